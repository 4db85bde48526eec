//! The order of work within and between streams, marks, events, errors.

use super::*;
use std::sync::{
    Barrier,
    atomic::{AtomicBool, AtomicU32},
    mpsc,
};

fn streams(n: usize) -> Vec<Stream> {
    let executor = Arc::new(Executor::default());
    (0..n).map(|_| Stream::new(executor.clone())).collect()
}

#[test]
fn work_runs_in_order_and_concurrently_with_the_caller() {
    let stream = &streams(1)[0];
    let (sender, receiver) = mpsc::channel();
    let (open, door) = mpsc::channel::<()>();
    stream.push(Vec::new(), move || door.recv().unwrap());
    for i in 0..100 {
        let sender = sender.clone();
        stream.push(Vec::new(), move || sender.send(i).unwrap());
    }
    let mark = stream.mark();
    assert!(!mark.is_reached() && !stream.is_idle());
    open.send(()).unwrap();
    mark.wait();
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    stream.settle();
}

#[test]
fn streams_run_concurrently() {
    // Each piece waits for those of all other streams.
    let all = streams(5);
    let meeting = Arc::new(Barrier::new(all.len()));
    for stream in &all {
        let meeting = meeting.clone();
        stream.push(Vec::new(), move || {
            meeting.wait();
        });
    }
    all.iter().for_each(Stream::settle);
}

#[test]
fn marks_order_streams_whichever_thread_waits() {
    let all = streams(8);
    let count = Arc::new(AtomicU32::new(0));
    for round in 0..50 {
        let mut mark = Mark::now();
        for (i, stream) in all.iter().enumerate() {
            let count = count.clone();
            let number = round * all.len() as u32 + i as u32;
            stream.push(vec![mark], move || assert_eq!(count.fetch_add(1, SeqCst), number));
            mark = stream.mark();
        }
        if round % 3 == 0 {
            mark.wait(); // this thread helps
        }
        all[0].push(vec![mark], || ());
    }
    all.iter().for_each(Stream::settle);
    assert_eq!(count.load(SeqCst), 400);
}

#[test]
fn run_returns_when_its_work_is_done() {
    let stream = &streams(1)[0];
    let done = Arc::new(AtomicBool::new(false));
    for _ in 0..1000 {
        stream.push(Vec::new(), || ());
        let own = done.clone();
        stream.run(Vec::new(), move || own.store(true, SeqCst));
        assert!(done.swap(false, SeqCst));
    }
}

#[test]
fn a_stream_is_idle_exactly_when_its_last_mark_is_reached() {
    let stream = &streams(1)[0];
    for round in 0..2000 {
        stream.push(Vec::new(), || ());
        let mark = stream.mark();
        if round % 2 == 0 {
            while !mark.is_reached() {}
            assert!(stream.is_idle());
        } else {
            while !stream.is_idle() {}
            assert!(mark.is_reached() && mark.time().is_some());
        }
    }
}

#[test]
fn synchronizing_returns_errors_and_resumes_panics() {
    let stream = &streams(1)[0];
    let after = Arc::new(AtomicBool::new(false));
    let behind = after.clone();
    stream.enqueue(|| Err(Error::Canceled));
    stream.enqueue(move || {
        behind.store(true, SeqCst);
        Ok(())
    });
    let event = Event::new();
    assert!(event.query());
    stream.record(&event);
    event.synchronize();
    assert!(matches!(stream.synchronize(), Err(Error::Canceled)) && !after.load(SeqCst));
    assert!(stream.synchronize().is_ok());
    stream.enqueue(|| panic!("queued"));
    stream.record(&event);
    let end = catch_unwind(AssertUnwindSafe(|| stream.synchronize()));
    assert!(end.is_err() && event.query());
}

#[test]
fn marks_add_no_work_to_a_stream() {
    let stream = &streams(1)[0];
    for _ in 0..100 {
        let (open, door) = mpsc::channel::<()>();
        stream.push(Vec::new(), move || door.recv().unwrap());
        let behind = stream.mark();
        // As queries and other streams' work ask.
        let asked: Vec<Mark> = (0..20).map(|_| stream.mark()).collect();
        assert!(!stream.is_idle() && !behind.is_reached());
        open.send(()).unwrap();
        behind.wait();
        assert!(stream.is_idle() && stream.mark().is_reached());
        asked.iter().for_each(Mark::wait);
    }
}

#[test]
fn an_event_has_the_position_of_its_last_recording() {
    let all = streams(2);
    let event = Event::new();
    let (open, door) = mpsc::channel::<()>();
    all[0].record(&event);
    all[0].push(Vec::new(), move || door.recv().unwrap());
    let first = event.clone();
    let begin = Event::new();
    all[1].record(&begin);
    all[0].record(&event);
    assert!(!first.query() && event.elapsed_ms(&begin).is_none());
    all[1].wait(&event);
    let waits = all[1].mark();
    assert!(!waits.wait_for(Duration::from_millis(20)));
    open.send(()).unwrap();
    waits.wait();
    assert!(event.query() && event.elapsed_ms(&begin).unwrap() >= 20.0);
}
