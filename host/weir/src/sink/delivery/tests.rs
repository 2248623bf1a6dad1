use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::clock::BoxFuture;
use crate::sink::Refusal;
use crate::sink::bench::{Bench, commit};
use crate::store::{Cut, LetterId, Requeued};

type Answer = Box<dyn FnMut(&[OutboxEntry]) -> Result<Delivered, SinkError> + Send>;

/// A sink that answers as it is told.
struct Scripted {
    answer: Answer,
}

impl Sink for Scripted {
    fn name(&self) -> &str {
        "out"
    }

    fn may_refuse(&self) -> bool {
        true
    }

    fn deliver<'a>(
        &'a mut self,
        batch: &'a [OutboxEntry],
        _key: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Delivered, SinkError>> {
        let answer = (self.answer)(batch);
        Box::pin(async move { answer })
    }
}

impl Bench {
    fn delivery(
        &self,
        answer: impl FnMut(&[OutboxEntry]) -> Result<Delivered, SinkError> + Send + 'static,
    ) -> Delivery {
        self.deliver_to(
            Box::new(Scripted {
                answer: Box::new(answer),
            }),
            DeliverySettings::default(),
        )
    }
}

type Taken = Arc<Mutex<Vec<(String, u64)>>>;

fn taken(taken: &Taken) -> Vec<(String, u64)> {
    taken.lock().unwrap().clone()
}

fn all(batch: &[OutboxEntry]) -> Delivered {
    Delivered {
        done: batch.len(),
        refused: Vec::new(),
    }
}

fn named(entry: &OutboxEntry) -> (String, u64) {
    (entry.id.clone(), entry.revision)
}

/// Takes everything but the entries that `refuses` says.
fn picky(
    log: &Taken,
    mut refuses: impl FnMut(&OutboxEntry) -> bool + Send + 'static,
) -> impl FnMut(&[OutboxEntry]) -> Result<Delivered, SinkError> + Send + 'static {
    let log = log.clone();
    move |batch| {
        let mut delivered = all(batch);
        for (at, entry) in batch.iter().enumerate() {
            if refuses(entry) {
                delivered.refused.push((at, "400 no such field".into()));
            } else {
                log.lock().unwrap().push(named(entry));
            }
        }
        Ok(delivered)
    }
}

#[tokio::test]
async fn all_that_is_there_is_delivered_in_order_and_forgotten() {
    let bench = Bench::new().await;
    let log = Taken::default();
    bench.put(&[("1", 1), ("2", 1)]).await;
    bench.put(&[("2", 2), ("3", 1)]).await;
    let delivery = bench.delivery(picky(&log, |_| false));
    let status = delivery.status();
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    let expected = [("1", 1), ("2", 1), ("2", 2), ("3", 1)];
    assert_eq!(
        taken(&log),
        expected.map(|(id, revision)| (id.to_owned(), revision))
    );
    assert_eq!(status.borrow().delivered, 4);
    assert_eq!(bench.waiting(), 0);
}

#[tokio::test]
async fn a_commit_wakes_the_loop_and_a_stop_ends_it() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    let log = Taken::default();
    let delivery = bench.delivery(picky(&log, |_| false));
    let mut status = delivery.status();
    let running = tokio::spawn(delivery.run(bench.mode.subscribe()));
    for number in 1..=5_u8 {
        bench.put(&[("1", number)]).await;
        status
            .wait_for(|status| status.delivered == u64::from(number))
            .await
            .unwrap();
    }
    bench.mode.send_replace(Mode::Stop);
    assert_eq!(running.await.unwrap(), Ended::Stopped);
    assert_eq!(
        bench.waiting(),
        0,
        "the last acknowledgement was waited for"
    );
}

#[tokio::test]
async fn a_loop_without_a_master_stops() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    let running = tokio::spawn(
        bench
            .delivery(|batch| Ok(all(batch)))
            .run(bench.mode.subscribe()),
    );
    drop(bench.mode);
    assert_eq!(running.await.unwrap(), Ended::Stopped);
}

#[tokio::test]
async fn a_sink_that_fails_is_tried_again_and_nothing_is_skipped() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    bench.put(&[("1", 1), ("2", 1), ("3", 1)]).await;
    let log = Taken::default();
    let mut good = picky(&log, |_| false);
    let mut failures = 0;
    // Fails six times, takes one entry, fails again, then takes the rest.
    let delivery = bench.delivery(move |batch| {
        failures += 1;
        match failures {
            1..=6 | 8 => Err(SinkError::new("out", "connection refused")),
            7 => good(&batch[..1]),
            _ => good(batch),
        }
    });
    let mut status = delivery.status();
    let mut failing = status.clone();
    let running = tokio::spawn(delivery.run(bench.mode.subscribe()));
    let seen = failing
        .wait_for(|status| status.failing.is_some())
        .await
        .unwrap()
        .clone();
    assert_eq!(seen.failing.unwrap().error, "sink out: connection refused");
    status
        .wait_for(|status| status.delivered == 3)
        .await
        .unwrap();
    bench.mode.send_replace(Mode::Stop);
    assert_eq!(running.await.unwrap(), Ended::Stopped);
    assert_eq!(status.borrow().failing, None);
    assert_eq!(taken(&log).len(), 3);
    assert_eq!(bench.waiting(), 0);
    assert!(
        bench.clock.monotonic() > Duration::ZERO,
        "it waited between the tries"
    );
}

#[tokio::test]
async fn draining_gives_up_on_a_sink_that_keeps_failing() {
    let bench = Bench::new().await;
    bench.put(&[("1", 1)]).await;
    let error = SinkError::new("out", "disk full");
    let answer = error.clone();
    let mut tries = 0;
    let counted = Arc::new(AtomicU64::new(0));
    let count = counted.clone();
    let delivery = bench.delivery(move |_| {
        tries += 1;
        count.store(tries, Ordering::SeqCst);
        Err(answer.clone())
    });
    assert_eq!(
        delivery.run(bench.mode.subscribe()).await,
        Ended::GaveUp(error)
    );
    assert_eq!(counted.load(Ordering::SeqCst), 4);
    assert_eq!(bench.waiting(), 1);
}

#[tokio::test]
async fn a_closed_sink_ends_the_loop_at_once() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    bench.put(&[("1", 1)]).await;
    let error = SinkError::new("out", "broken pipe").with(Remedy::Gone);
    let answer = error.clone();
    let delivery = bench.delivery(move |_| Err(answer.clone()));
    assert_eq!(
        delivery.run(bench.mode.subscribe()).await,
        Ended::Closed(error)
    );
    assert_eq!(bench.waiting(), 1);
}

#[tokio::test]
async fn case_149_a_refused_entry_is_tried_on_a_growing_schedule_and_set_aside() {
    let bench = Bench::new().await;
    let ids = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];
    bench.put(&ids.map(|id| (id, 1))).await;
    let log = Taken::default();
    let tries = Arc::new(Mutex::new(Vec::new()));
    let (clock, times, store, unit) = (
        bench.clock.clone(),
        tries.clone(),
        bench.store.clone(),
        bench.unit,
    );
    let mut traffic = 0_u8;
    let delivery = bench.delivery(picky(&log, move |entry| {
        if entry.id != "5" {
            return false;
        }
        times.lock().unwrap().push(clock.monotonic());
        // Good traffic between the tries.
        traffic += 1;
        let mut more = commit(&store, unit, &[(&format!("more {traffic}"), 1)]);
        while matches!(more.try_recv(), Err(TryRecvError::Empty)) {
            std::thread::yield_now();
        }
        true
    }));
    let status = delivery.status();
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);

    let good: Vec<String> = taken(&log)
        .into_iter()
        .map(|(id, _)| id)
        .filter(|id| !id.starts_with("more"))
        .collect();
    assert_eq!(good, ["1", "2", "3", "4", "6", "7", "8", "9", "10"]);
    let tries = tries.lock().unwrap().clone();
    assert_eq!(tries.len(), 6);
    let gaps: Vec<Duration> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.is_sorted_by(|one, next| one < next), "{gaps:?}");
    let letters = bench.store.dead_letters(9).unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (letters[0].key.as_str(), letters[0].error.as_str()),
        ("acme/orders/5/1", "400 no such field")
    );
    let line: serde_json::Value = serde_json::from_str(&letters[0].line).unwrap();
    assert_eq!(line["data"]["content"], 1);
    let status = status.borrow().clone();
    assert_eq!((status.dead, status.held, status.delivered), (1, 0, 9 + 6));
    assert_eq!(bench.waiting(), 0);
}

#[tokio::test]
async fn later_versions_of_a_refused_record_wait_behind_it() {
    let bench = Bench::new().await;
    bench
        .put(&[("1", 1), ("2", 1), ("1", 2), ("3", 1), ("1", 3)])
        .await;
    let log = Taken::default();
    let mut left = 3;
    let delivery = bench.delivery(picky(&log, move |entry| {
        let refuse = named(entry) == ("1".into(), 1) && left > 0;
        left -= i32::from(refuse);
        refuse
    }));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    let of_one: Vec<u64> = taken(&log)
        .into_iter()
        .filter(|(id, _)| id == "1")
        .map(|(_, revision)| revision)
        .collect();
    assert_eq!(of_one, [1, 2, 3]);
    assert_eq!(taken(&log).len(), 5);
    let others: Vec<String> = taken(&log)
        .into_iter()
        .map(|(id, _)| id)
        .filter(|id| id != "1")
        .collect();
    assert_eq!(others, ["2", "3"]);
    assert_eq!(taken(&log)[0].0, "2", "nobody else waits");
    assert_eq!(bench.store.dead_letters(9).unwrap(), []);
    assert_eq!(bench.waiting(), 0);
}

#[tokio::test]
async fn an_acknowledgement_that_is_not_stored_is_given_again() {
    let bench = Bench::new().await;
    bench.put(&[("1", 1)]).await;
    bench.fuse.set(0, Cut::Refuse);
    let log = Taken::default();
    let delivery = bench.delivery(picky(&log, |entry| entry.id == "none"));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    assert_eq!(taken(&log).len(), 1, "the sink is not asked twice for it");
    assert_eq!(bench.waiting(), 0);
}

#[tokio::test]
async fn a_store_that_dies_ends_the_loop() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    bench.put(&[("1", 1), ("2", 1)]).await;
    bench.fuse.set(0, Cut::DieBefore);
    let delivery = bench.delivery(|batch| Ok(all(&batch[..1])));
    assert_eq!(
        delivery.run(bench.mode.subscribe()).await,
        Ended::StoreClosed
    );
}

#[tokio::test]
async fn an_empty_answer_is_a_failure_and_no_busy_loop() {
    let bench = Bench::new().await;
    bench.put(&[("1", 1)]).await;
    let delivery = bench.delivery(|_| Ok(Delivered::default()));
    assert!(matches!(
        delivery.run(bench.mode.subscribe()).await,
        Ended::GaveUp(_)
    ));
    assert_eq!(bench.waiting(), 1);
}

fn id(sequence: u64) -> LetterId {
    LetterId {
        sink: "out".into(),
        sequence,
    }
}

async fn requeue(bench: &Bench, sequence: u64) -> Requeued {
    bench.store.requeue(id(sequence)).await.unwrap().unwrap()
}

#[tokio::test]
async fn tries_are_counted_over_restarts_and_nothing_else_is_delivered_again() {
    let mut bench = Bench::new().await;
    bench.put(&[("1", 1), ("2", 1), ("2", 2), ("3", 1)]).await;
    let (log, tries) = (Taken::default(), Arc::new(AtomicU64::new(0)));
    for _ in 0..20 {
        bench.mode.send_replace(Mode::Run);
        let (clock, count) = (bench.clock.clone(), tries.clone());
        let began = clock.monotonic();
        let mode = bench.mode.clone();
        let delivery = bench.delivery(picky(&log, move |entry| {
            let refuse = named(entry) == ("2".into(), 1);
            if refuse {
                count.fetch_add(1, Ordering::SeqCst);
                // A host that lives for one try.
                mode.send_replace(Mode::Stop);
            }
            refuse
        }));
        let mode = bench.mode.clone();
        let mut status = delivery.status();
        tokio::spawn(async move {
            let done = |status: &DeliveryStatus| status.dead == 1 || status.delivered == 1;
            let _ = status.wait_for(done).await;
            tokio::task::yield_now().await;
            if status.borrow().held == 0 {
                mode.send_replace(Mode::Stop);
            }
        });
        assert_eq!(
            delivery.run(bench.mode.subscribe()).await,
            Ended::Stopped,
            "{began:?}"
        );
        bench = bench.after_a_kill().await;
        if !bench.dead().is_empty() {
            break;
        }
    }
    assert_eq!(tries.load(Ordering::SeqCst), 6);
    let letter = bench.letter(2).unwrap();
    assert_eq!((letter.tries, letter.state), (6, LetterState::Dead));
    // What waited behind it goes out now.
    bench.mode.send_replace(Mode::Drain);
    let last = bench.delivery(picky(&log, |_| false));
    assert_eq!(last.run(bench.mode.subscribe()).await, Ended::Drained);
    let mut all = taken(&log);
    all.sort();
    let expected = [("1", 1), ("2", 2), ("3", 1)];
    assert_eq!(
        all,
        expected.map(|(id, revision)| (id.to_owned(), revision))
    );
    assert_eq!(bench.letter(2).unwrap().superseded, Some(2));
}

#[tokio::test]
async fn a_requeued_letter_goes_out_under_its_key_while_the_loop_runs() {
    let bench = Bench::new().await;
    bench.put(&[("1", 1)]).await;
    let log = Taken::default();
    let delivery = bench.delivery(picky(&log, |_| true));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    assert_eq!(bench.dead().len(), 1);

    bench.mode.send_replace(Mode::Run);
    let delivery = bench.delivery(picky(&log, |_| false));
    let mut status = delivery.status();
    let running = tokio::spawn(delivery.run(bench.mode.subscribe()));
    assert_eq!(requeue(&bench, 1).await, Requeued::GoesOut);
    status
        .wait_for(|status| status.delivered == 1)
        .await
        .unwrap();
    bench.mode.send_replace(Mode::Stop);
    assert_eq!(running.await.unwrap(), Ended::Stopped);
    assert_eq!(taken(&log), [("1".to_owned(), 1)]);
    assert_eq!(bench.letter(1), None, "it is forgotten when it is taken");
    assert_eq!(requeue(&bench, 1).await, Requeued::Unknown);
}

#[tokio::test]
async fn a_requeued_letter_goes_before_later_revisions_and_never_after_one() {
    let bench = Bench::new().await;
    bench.put(&[("1", 1)]).await;
    let log = Taken::default();
    let delivery = bench.delivery(picky(&log, |_| true));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);

    // A later revision waits when the person decides.
    bench.put(&[("1", 2), ("2", 1)]).await;
    assert_eq!(requeue(&bench, 1).await, Requeued::GoesOut);
    let delivery = bench.delivery(picky(&log, |entry| entry.revision == 2));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    let of_one = |log: &Taken| -> Vec<u64> {
        let all = taken(log);
        let of_one = all.iter().filter(|(id, _)| id == "1");
        of_one.map(|(_, revision)| *revision).collect()
    };
    assert_eq!(of_one(&log), [1]);
    assert_eq!(bench.dead().len(), 1, "the later one is dead now");

    // A third one has been delivered when the person decides about the second.
    bench.put(&[("1", 3)]).await;
    let delivery = bench.delivery(picky(&log, |_| false));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    assert_eq!(of_one(&log), [1, 3]);
    assert_eq!(requeue(&bench, 2).await, Requeued::Superseded(3));
}

#[tokio::test]
async fn any_number_of_letters_may_be_requeued_at_once() {
    let bench = Bench::new().await;
    let ids: Vec<String> = (0..700).map(|id| (id % 350).to_string()).collect();
    for (number, part) in ids.chunks(350).enumerate() {
        let content = u8::try_from(number).unwrap() + 1;
        let records: Vec<(&str, u8)> = part.iter().map(|id| (id.as_str(), content)).collect();
        bench.put(&records).await;
    }
    let log = Taken::default();
    let delivery = bench.delivery(picky(&log, |_| true));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    assert_eq!(bench.dead().len(), 700);
    // The later ones first: order does not hang on the order of decisions.
    for sequence in (1..=700).rev() {
        assert_eq!(requeue(&bench, sequence).await, Requeued::GoesOut);
    }
    let delivery = bench.delivery(picky(&log, |_| false));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    let all = taken(&log);
    assert_eq!(all.len(), 700);
    for id in 0..350 {
        let of_it: Vec<u64> = all
            .iter()
            .filter(|(known, _)| *known == id.to_string())
            .map(|(_, revision)| *revision)
            .collect();
        assert_eq!(of_it, [1, 2], "record {id}");
    }
}

#[tokio::test]
async fn with_too_many_dead_letters_refused_entries_are_kept_and_tried() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    bench.put(&[("1", 1), ("2", 1), ("3", 1)]).await;
    let settings = DeliverySettings {
        dead_letters: 2,
        ..DeliverySettings::default()
    };
    let log = Taken::default();
    let mut tries = 0;
    let answer = picky(&log, move |entry| {
        tries += u32::from(entry.id == "3");
        tries < 30
    });
    let sink = Scripted {
        answer: Box::new(answer),
    };
    let delivery = bench.deliver_to(Box::new(sink), settings);
    let mut status = delivery.status();
    let running = tokio::spawn(delivery.run(bench.mode.subscribe()));
    status.wait_for(|status| status.letters_full).await.unwrap();
    status
        .wait_for(|status| status.delivered == 1)
        .await
        .unwrap();
    bench.mode.send_replace(Mode::Stop);
    assert_eq!(running.await.unwrap(), Ended::Stopped);
    assert_eq!(bench.dead().len(), 2, "no more than may be");
    assert_eq!(taken(&log), [("3".to_owned(), 1)]);
}

/// Refuses as a receiver does that is not there, or knows us no more.
fn shut(
    batch: &[OutboxEntry],
    refuses: impl Fn(&OutboxEntry) -> bool,
) -> Result<Delivered, SinkError> {
    let refusal = Refusal {
        word: "HTTP 404".into(),
        door: true,
    };
    let mut delivered = all(batch);
    for (at, entry) in batch.iter().enumerate() {
        if refuses(entry) {
            delivered.refused.push((at, refusal.clone()));
        }
    }
    Ok(delivered)
}

#[tokio::test]
async fn a_sink_that_refuses_everything_needs_a_person_and_makes_no_dead_letters() {
    let bench = Bench::new().await;
    bench.mode.send_replace(Mode::Run);
    let ids: Vec<String> = (1..=50).map(|id| id.to_string()).collect();
    let records: Vec<(&str, u8)> = ids.iter().map(|id| (id.as_str(), 1)).collect();
    bench.put(&records).await;
    let open = Arc::new(AtomicU64::new(0));
    let offers = Arc::new(AtomicU64::new(0));
    let (is_open, count) = (open.clone(), offers.clone());
    let delivery = bench.delivery(move |batch| {
        count.fetch_add(1, Ordering::SeqCst);
        // One at a time, as a sink of batches does it.
        shut(&batch[..1], |_| is_open.load(Ordering::SeqCst) == 0)
    });
    let resumer = delivery.resumer();
    let mut status = delivery.status();
    let running = tokio::spawn(delivery.run(bench.mode.subscribe()));
    let stopped = |status: &DeliveryStatus| {
        let failing = status.failing.as_ref();
        failing.is_some_and(|failing| failing.next.is_none())
    };
    let seen = status.wait_for(stopped).await.unwrap().clone();
    assert!(
        seen.failing
            .unwrap()
            .error
            .contains("HTTP 404: it refuses everything"),
    );
    assert_eq!(offers.load(Ordering::SeqCst), 3, "it is not hammered");
    assert_eq!(bench.dead(), []);
    open.store(1, Ordering::SeqCst);
    resumer.send_modify(|times| *times += 1);
    status
        .wait_for(|status| status.delivered == 50)
        .await
        .unwrap();
    bench.mode.send_replace(Mode::Stop);
    assert_eq!(running.await.unwrap(), Ended::Stopped);
    assert_eq!(status.borrow().failing, None);
    let outage = status.borrow().outage.clone().unwrap();
    assert!(outage.error.contains("it refuses everything"), "{outage:?}");
    assert_eq!((bench.dead().len(), bench.waiting()), (0, 0));
}

#[tokio::test]
async fn one_record_alone_that_is_refused_so_is_no_dead_letter_until_another_is_taken() {
    let bench = Bench::new().await;
    bench.put(&[("1", 1)]).await;
    let delivery = bench.delivery(|batch| shut(batch, |entry| entry.id == "1"));
    // Is it the record, or the sink?
    let ended = delivery.run(bench.mode.subscribe()).await;
    assert!(matches!(ended, Ended::GaveUp(_)), "{ended:?}");
    assert_eq!(bench.dead(), []);
    bench.put(&[("2", 1)]).await;
    // It is the record.
    let delivery = bench.delivery(|batch| shut(batch, |entry| entry.id == "1"));
    assert_eq!(delivery.run(bench.mode.subscribe()).await, Ended::Drained);
    assert_eq!(bench.dead().len(), 1);
}
