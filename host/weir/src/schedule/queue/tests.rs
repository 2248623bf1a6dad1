use super::*;

const S: fn(u64) -> Duration = Duration::from_secs;

fn report() -> Report {
    Report::default()
}

fn queue(units: &[(u64, u64)]) -> Queue {
    let mut queue = Queue::new(S(60), 0);
    for (unit, due) in units {
        queue.place(UnitId(*unit), 0, Some(S(*due)));
    }
    queue
}

fn finished(queue: &mut Queue, unit: u64, due: Option<Duration>, report: &Report) {
    let unit = UnitId(unit);
    let ticket = Ticket(queue.slots[&unit].lease.ticket);
    queue.finished(unit, ticket, (due, None), report);
}

fn next(queue: &mut Queue, now: u64) -> Option<u64> {
    queue.next(S(now)).map(|turn| turn.unit.0)
}

#[test]
fn units_come_in_the_order_of_their_due_times() {
    let mut queue = queue(&[(1, 30), (2, 10), (3, 20)]);
    assert_eq!(next(&mut queue, 5), None);
    assert_eq!(next(&mut queue, 20), Some(2));
    assert_eq!(next(&mut queue, 20), Some(3));
    assert_eq!(next(&mut queue, 20), None);
    assert_eq!(queue.next_due(), Some(S(30)));
}

#[test]
fn case_033_a_unit_in_flight_is_not_started_again() {
    let mut queue = queue(&[(1, 0)]);
    assert_eq!(next(&mut queue, 1), Some(1));
    queue.place(UnitId(1), 0, Some(S(2)));
    assert_eq!(next(&mut queue, 60), None);
    finished(&mut queue, 1, Some(S(70)), &report());
    assert_eq!(next(&mut queue, 70), Some(1));
}

#[test]
fn case_035_requests_during_a_poll_join_it() {
    let mut queue = queue(&[(1, 0)]);
    assert_eq!(next(&mut queue, 0), Some(1));
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let (sender, receiver) = oneshot::channel();
            assert_eq!(
                queue.ask(UnitId(1), Reason::SyncNow, Some(sender)),
                Asked::Joined
            );
            receiver
        })
        .collect();
    assert_eq!(next(&mut queue, 1), None);
    finished(&mut queue, 1, None, &report());
    for mut waiter in waiters {
        assert!(waiter.try_recv().is_ok());
    }
    assert_eq!(next(&mut queue, 1), None, "one poll answered all of them");
}

#[test]
fn a_resync_asked_for_during_a_poll_follows_it() {
    let mut queue = queue(&[(1, 0)]);
    assert_eq!(next(&mut queue, 0), Some(1));
    let (sender, mut receiver) = oneshot::channel();
    assert_eq!(
        queue.ask(UnitId(1), Reason::Resync, Some(sender)),
        Asked::Queued
    );
    finished(&mut queue, 1, Some(S(100)), &report());
    assert!(receiver.try_recv().is_err());
    let turn = queue.next(S(1)).expect("the resync's turn");
    assert_eq!(turn.reason, Reason::Resync);
    finished(&mut queue, 1, Some(S(100)), &report());
    assert!(receiver.try_recv().is_ok());
    assert_eq!(
        next(&mut queue, 50),
        None,
        "and the unit keeps one place in line"
    );
}

#[test]
fn a_person_goes_first() {
    let mut queue = queue(&[(1, 0), (2, 100)]);
    assert_eq!(queue.ask(UnitId(2), Reason::SyncNow, None), Asked::Queued);
    assert_eq!(next(&mut queue, 5), Some(2));
    assert_eq!(next(&mut queue, 5), Some(1));
    assert_eq!(queue.ask(UnitId(9), Reason::SyncNow, None), Asked::Unknown);
}

#[test]
fn a_connection_at_its_limit_makes_its_units_stand_aside() {
    let mut queue = queue(&[(1, 0), (2, 1), (3, 2)]);
    queue.limit(0, 1);
    queue.place(UnitId(4), 1, Some(S(3)));
    assert_eq!(next(&mut queue, 10), Some(1));
    assert_eq!(next(&mut queue, 10), Some(4), "another connection goes on");
    assert_eq!(next(&mut queue, 10), None);
    assert_eq!(queue.oldest_due(S(10)), S(9));
    finished(&mut queue, 1, None, &report());
    assert_eq!(next(&mut queue, 10), Some(2), "in the order of their turns");
    assert_eq!(next(&mut queue, 10), None);
}

#[test]
fn a_removed_unit_is_gone_even_after_its_poll() {
    let mut queue = queue(&[(1, 0), (2, 0)]);
    assert_eq!(next(&mut queue, 0), Some(1));
    queue.remove(UnitId(1));
    queue.remove(UnitId(2));
    finished(&mut queue, 1, Some(S(5)), &report());
    assert_eq!(next(&mut queue, 100), None);
    assert!(!queue.contains(UnitId(1)));
    assert_eq!(queue.running(), 0);
}

#[test]
fn a_lost_poll_is_given_up_and_its_end_says_nothing() {
    let mut queue = queue(&[(1, 0)]);
    let lost = queue.next(S(0)).expect("its turn");
    queue.heartbeat(UnitId(1), lost.ticket, S(30));
    assert!(
        queue.expire(S(60), &report()).is_empty(),
        "it gave a sign of life"
    );
    assert_eq!(queue.expire(S(90), &report()), [UnitId(1)]);
    let again = queue.next(S(90)).expect("its turn again");
    assert!(again.ticket > lost.ticket);
    queue.finished(UnitId(1), lost.ticket, (Some(S(91)), None), &report());
    assert!(
        queue.is_running(UnitId(1)),
        "the end of the lost poll is not the end of this one"
    );
    assert_eq!(next(&mut queue, 1_000), None);
}

#[test]
fn a_unit_that_comes_back_gets_higher_tickets_than_it_had() {
    let mut queue = queue(&[(1, 0), (2, 0)]);
    for _ in 0..3 {
        assert_eq!(next(&mut queue, 1), Some(1));
        finished(&mut queue, 1, Some(S(0)), &report());
    }
    queue.remove(UnitId(1));
    queue.place(UnitId(1), 0, Some(S(0)));
    let turn = queue.next(S(1)).unwrap();
    assert_eq!((turn.unit, turn.ticket), (UnitId(1), Ticket(4)));
    // It leaves while it is polled, and comes back after that.
    queue.remove(UnitId(1));
    finished(&mut queue, 1, None, &report());
    assert!(!queue.contains(UnitId(1)));
    queue.place(UnitId(1), 0, Some(S(0)));
    assert_eq!(queue.next(S(1)).unwrap().ticket, Ticket(5));
}

fn aside(queue: &mut Queue, unit: u64, side: Option<Duration>) {
    let ticket = Ticket(queue.slots[&UnitId(unit)].lease.ticket);
    queue.finished(UnitId(unit), ticket, (None, side), &report());
}

#[test]
fn a_side_walk_is_begun_when_nothing_else_can_be_and_keeps_its_units_place_in_line() {
    let mut queue = queue(&[(1, 10)]);
    queue.place_aside(UnitId(1), Some(S(0)));
    queue.place(UnitId(2), 0, Some(S(5)));
    assert_eq!(queue.next_due(), Some(S(0)));
    assert_eq!(queue.next(S(5)).map(|turn| turn.unit), Some(UnitId(2)));
    let turn = queue.next(S(5)).expect("the side walk");
    assert_eq!((turn.unit, turn.reason), (UnitId(1), Reason::Backfill));
    assert!(!queue.wants_back(UnitId(1), S(9)));
    assert!(queue.wants_back(UnitId(1), S(10)), "its main walk is due");
    assert_eq!(queue.next(S(10)), None, "and is not begun beside it");
    aside(&mut queue, 1, Some(S(10)));
    let turn = queue.next(S(10)).expect("the main walk");
    assert_eq!((turn.unit, turn.reason), (UnitId(1), Reason::Schedule));
}

#[test]
fn who_asks_during_a_side_walk_is_served_after_it_not_by_it() {
    let mut queue = queue(&[]);
    queue.place(UnitId(1), 0, None);
    assert_eq!(queue.ask(UnitId(1), Reason::Backfill, None), Asked::Queued);
    assert_eq!(
        queue.next(S(0)).map(|turn| turn.reason),
        Some(Reason::Backfill)
    );
    assert_eq!(queue.ask(UnitId(1), Reason::Backfill, None), Asked::Joined);
    let (waiter, mut answer) = oneshot::channel();
    assert_eq!(
        queue.ask(UnitId(1), Reason::SyncNow, Some(waiter)),
        Asked::Queued
    );
    assert!(queue.wants_back(UnitId(1), S(0)));
    aside(&mut queue, 1, None);
    assert!(
        answer.try_recv().is_err(),
        "that was not what was asked for"
    );
    assert_eq!(
        queue.next(S(1)).map(|turn| turn.reason),
        Some(Reason::SyncNow)
    );
    // And the other way round.
    assert_eq!(queue.ask(UnitId(1), Reason::Backfill, None), Asked::Queued);
    finished(&mut queue, 1, None, &report());
    assert!(answer.try_recv().is_ok());
    assert_eq!(
        queue.next(S(2)).map(|turn| turn.reason),
        Some(Reason::Backfill)
    );
}

#[test]
fn few_side_walks_run_at_once_and_none_holds_up_its_connection() {
    let mut queue = queue(&[]);
    queue.limit_aside(1);
    queue.limit(7, 1);
    for unit in 1..=2 {
        queue.place(UnitId(unit), 7, None);
        queue.place_aside(UnitId(unit), Some(S(0)));
    }
    queue.place(UnitId(3), 7, Some(S(4)));
    assert_eq!(queue.next(S(0)).map(|turn| turn.unit), Some(UnitId(1)));
    assert_eq!(queue.next(S(1)), None);
    assert_eq!(queue.next_due(), Some(S(4)), "no hot loop meanwhile");
    assert_eq!(queue.next(S(4)), None, "the connection is at its limit");
    assert!(
        queue.wants_back(UnitId(1), S(4)),
        "somebody waits for its place"
    );
    aside(&mut queue, 1, Some(S(4)));
    assert_eq!(queue.next(S(4)).map(|turn| turn.unit), Some(UnitId(3)));
    finished(&mut queue, 3, None, &report());
    assert!(
        queue
            .next(S(4))
            .is_some_and(|turn| turn.reason == Reason::Backfill)
    );
}

#[test]
fn a_unit_is_changed_between_two_polls_and_loses_no_place() {
    let mut queue = queue(&[(1, 0)]);
    assert!(queue.next(S(0)).is_some());
    assert_eq!(queue.hold(UnitId(1), S(0)), Held::Polled);
    finished(&mut queue, 1, Some(S(5)), &report());
    let Held::Here { ticket, due } = queue.hold(UnitId(1), S(1)) else {
        panic!("nobody polls it");
    };
    assert_eq!(queue.next(S(5)), None, "not while it is changed");
    queue.finished(UnitId(1), ticket, (due, Some(S(6))), &report());
    let turn = queue.next(S(6)).expect("its turn");
    assert_eq!(turn.reason, Reason::Schedule);
    assert!(turn.ticket > ticket);
}
