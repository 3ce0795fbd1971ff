//! Tests of lines that nothing waits for.

use std::io::Read;

use proptest::prelude::*;

use super::*;

fn open() -> Queue {
    let queue = Queue::new(Stream::Out);
    queue.set_open(true);
    queue
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

/// The number of lines that a notice counts.
fn noticed(line: &str) -> Option<u64> {
    line.strip_prefix("note: ")?
        .strip_suffix(" lines were left out because standard output was not read\n")?
        .parse()
        .ok()
}

proptest! {
    #[test]
    fn each_line_is_written_in_order_or_counted_by_a_notice_at_its_place(
        turns in prop::collection::vec((0_usize..3000, 0_usize..1500), 1..8)
    ) {
        let queue = open();
        let (mut pushed, mut expected) = (0_u64, 0_u64);
        let mut read = |queue: &Queue| {
            let line = text(&queue.next(&|| {}).expect("a line"));
            match noticed(&line) {
                Some(count) => expected += count,
                None => {
                    assert_eq!(line, format!("{expected}\n"));
                    expected += 1;
                }
            }
        };
        for (pushes, reads) in turns {
            for _ in 0..pushes {
                queue.push(format!("{pushed}\n").as_bytes());
                pushed += 1;
                let state = queue.lock();
                prop_assert!(state.lines.len() <= MOST_LINES + 1 && state.bytes <= MOST_BYTES + 100);
            }
            for _ in 0..reads {
                let state = queue.lock();
                if state.lines.is_empty() && state.untold == 0 {
                    break;
                }
                drop(state);
                read(&queue);
            }
        }
        queue.set_open(false);
        while queue.lock().untold > 0 || !queue.lock().lines.is_empty() {
            read(&queue);
        }
        prop_assert_eq!(expected, pushed);
        prop_assert_eq!(queue.next(&|| {}), None);
    }
}

#[test]
fn long_lines_are_bounded_by_bytes() {
    let queue = open();
    let line = vec![b'x'; 100 << 10];
    (0..5).for_each(|_| assert!(queue.push(&line)));
    assert_eq!((queue.lock().lines.len(), queue.left_out.load(Ordering::Relaxed)), (2, 3));
}

#[test]
fn queue_without_a_thread_leaves_the_line_to_the_caller() {
    let queue = Queue::new(Stream::Out);
    assert!(!queue.push(b"x\n") && !queue.push_always(b"x\n"));
    assert_eq!(queue.left_out.load(Ordering::Relaxed), 0);
}

#[test]
fn unread_pipe_costs_the_caller_its_patience_and_no_more() {
    let (mut reader, writer) = io::pipe().unwrap();
    let error = write_within(writer.as_fd(), &vec![b'x'; 1 << 20], Duration::from_millis(10)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    drop(writer);
    let mut taken = Vec::new();
    reader.read_to_end(&mut taken).unwrap();
    assert!(taken.len() < 1 << 20 && taken.len() >= PIECE, "{}", taken.len());
}

#[test]
fn last_words_wait_for_a_slow_reader_but_not_for_one_that_takes_nothing() {
    let queue = open();
    assert!(queue.push_always(&vec![b'x'; 10 * PIECE]));
    let none = queue.wait_until_empty(Duration::from_millis(10), Duration::from_secs(60)).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::TimedOut);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let slow = |_: &[u8]| {
                std::thread::sleep(Duration::from_millis(20));
                Ok(())
            };
            queue.run(slow, || {});
        });
        queue.wait_until_empty(Duration::from_secs(10), Duration::from_secs(60)).unwrap();
        queue.set_open(false);
    });
}

#[test]
fn error_of_the_last_line_is_returned() {
    let queue = open();
    std::thread::scope(|scope| {
        scope.spawn(|| queue.run(|_| Err(ErrorKind::StorageFull.into()), || {}));
        assert!(queue.push_always(b"report"));
        let error = queue.wait_until_empty(Duration::from_secs(10), Duration::from_secs(60)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        queue.set_open(false);
    });
}
