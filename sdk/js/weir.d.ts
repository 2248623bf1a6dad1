// Types of weir.js. What the fields mean is said in docs/wit.md.

export type Class =
  | "temporary" | "rate-limited" | "auth-expired" | "auth-revoked" | "permanent" | "position-lost" | "pending"
  | "incomplete" | "unknown";
export type Scope = "unit" | "connection" | "credential" | "app";
export type Reason = "schedule" | "sync-now" | "backfill" | "settle" | "resync";
export type Pair = [string, string];
export interface Header { name: string; value: string }
export interface Limit {
  bucket?: string; scope: Scope; quotaUnit: string; limit?: number; remaining?: number; usedPercent?: number;
  per?: number; resetsIn?: number; restores?: number; wait?: number;
}
export interface Fault {
  class: Class; scope: Scope; code: string; message: string; wait?: number; pageSize?: number; limits: Limit[];
  extra: Pair[];
}
export interface Oauth2 { tokenUrl: string; authorizeUrl?: string; scopes: string[]; clientInBody: boolean }
export type AuthScheme =
  | { tag: "none" } | { tag: "bearer" } | { tag: "basic" } | { tag: "header"; val: string }
  | { tag: "query"; val: string } | { tag: "oauth2"; val: Oauth2 };
export interface Origin { id: string; url: string; auth: AuthScheme[] }
export interface Stream {
  name: string; title: string; key: string[]; schema?: string; volatile: string[];
  cursor: "timestamp" | "opaque" | "snapshot"; order: "ascending" | "descending" | "unordered"; pageSize: number;
  resultCap?: number; windowCap?: number; retention?: number; granularity: number; settle?: number; parent?: string;
  backfill: boolean; extra: Pair[];
}
export interface Pacing {
  minInterval?: number; maxInterval?: number; unpublishedLimits: boolean; concurrency?: number; backoffCap?: number;
  notModifiedIsFree: boolean; documentedLimits: Limit[];
}
export interface Descriptor {
  name: string; title: string; version: string; docs?: string; configSchema: string; origins: Origin[];
  streams: Stream[]; pacing: Pacing; extra: Pair[];
}
export interface Task<Config, Cursor> {
  stream: string; partition?: string; parent?: string; config: Config; cursor?: Cursor;
  window: { since?: number; until: number }; reason: Reason; now: number; pageSize: number;
}
export interface Request {
  method: "get" | "post" | "put" | "patch" | "delete" | "head"; origin: string;
  target: { tag: "path" | "link"; val: string }; query: Pair[]; headers: Header[];
  body?: { tag: "text"; val: string } | { tag: "bytes"; val: Uint8Array }; conditional: boolean; bucket?: string;
  cost: number; idempotencyHeader?: string;
}
export interface Response {
  status: number; url: string; headers: Header[]; body: string;
  header(name: string): string | undefined;
  field(pointer: string): string | undefined;
  json(): Row;
  rows(pointer: string): Row[];
}
export interface Record { id: string; updatedAt?: number; deleted: boolean; data: { tag: "text"; val: string } }
export interface Page<Step, Cursor> {
  records: Record[]; next: Step[]; cursor?: Cursor; total?: number; truncated: boolean; pollAfter?: number;
  limits: Limit[]; extra: Pair[];
}
export interface Author<Config, Step, Cursor> {
  describe(config?: Config): Descriptor;
  partitions?(stream: string, config: Config): string[];
  buildRequest(task: Task<Config, Cursor>, step?: Step): Request;
  readResponse(task: Task<Config, Cursor>, step: Step | undefined, response: Response): Page<Step, Cursor>;
}
type Query = { [name: string]: string | number | boolean | null | undefined } | Pair[];

export const log: { debug(message: unknown): void; info(message: unknown): void; warn(message: unknown): void };
export function connector<Config, Step, Cursor>(author: Author<Config, Step, Cursor>): object;
export function fault(kind: Class, message: string, more?: Partial<Fault>): Fault;
export function fromStatus(response: Response): Fault;
export function descriptor(
  name: string, title: string, version: string,
  more?: Partial<Omit<Descriptor, "pacing">> & { pacing?: Partial<Pacing> },
): Descriptor;
export function origin(id: string, url: string, auth?: (AuthScheme | "none" | "bearer" | "basic")[]): Origin;
export function stream(name: string, more?: Partial<Stream>): Stream;
export function limit(more?: Partial<Limit>): Limit;
export function get(origin: string, path: string, query?: Query, more?: Partial<Request>): Request;
export function follow(origin: string, link: string, more?: Partial<Request>): Request;
export function postJson(origin: string, path: string, value: unknown, more?: Partial<Request>): Request;
export function page<Step, Cursor>(records: Record[], more?: Partial<Page<Step, Cursor>>): Page<Step, Cursor>;
export function record(row: Row, id: string, more?: Partial<Record>): Record;
export class Row {
  constructor(json: string);
  readonly json: string;
  readonly value: any;
  at(pointer: string): Row | undefined;
  rows(): Row[] | undefined;
  id(pointer: string): string;
  time(pointer: string): number | undefined;
}
export function rfc3339(ms?: number): string | undefined;
export function seconds(ms?: number): number | undefined;
