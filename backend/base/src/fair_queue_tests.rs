use std::{future::Future, pin::Pin};

use futures_util::FutureExt as _;
use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds {
    slots: 2,
    waiting: 100,
    waiting_of_owner: 100,
};

type PendingEntry<'a> = Pin<Box<dyn Future<Output = Result<Slot, Full>> + 'a>>;

/// Those who wait or have a slot, in the order in which they came.
struct QueueModel<'a> {
    queue: &'a FairQueue,
    waiting: Vec<(Claim, PendingEntry<'a>)>,
    served: Vec<(Claim, Slot)>,
    refused: usize,
}

impl<'a> QueueModel<'a> {
    fn new(queue: &'a FairQueue) -> Self {
        Self {
            queue,
            waiting: Vec::new(),
            served: Vec::new(),
            refused: 0,
        }
    }

    /// Somebody comes.
    fn come(&mut self, priority: Priority, owner: &str) {
        self.claim(Claim::new(priority, owner));
    }

    fn claim(&mut self, claim: Claim) {
        let queue = self.queue;
        let entering = {
            let claim = claim.clone();
            Box::pin(async move { queue.enter(&claim).await })
        };
        self.waiting.push((claim, entering));
        self.look();
    }

    /// Sees who has got a slot, and gives their owners.
    fn look(&mut self) -> Vec<Arc<str>> {
        let mut got = Vec::new();
        let mut index = 0;
        while index < self.waiting.len() {
            match (&mut self.waiting[index].1).now_or_never() {
                None => index += 1,
                Some(outcome) => {
                    let (claim, _) = self.waiting.remove(index);
                    match outcome {
                        Ok(slot) => {
                            got.push(Arc::clone(&claim.owner));
                            self.served.push((claim, slot));
                        }
                        Err(Full { .. }) => self.refused += 1,
                    }
                }
            }
        }
        got
    }

    /// The one who has a slot for longest gives it back; who gets it?
    fn finish(&mut self) -> Vec<Arc<str>> {
        drop(self.served.remove(0));
        self.look()
    }
}

fn owners(names: &[Arc<str>]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}

#[test]
fn a_long_queue_of_one_does_not_hold_up_another() {
    let queue = FairQueue::new("test", BOUNDS);
    let mut hall = QueueModel::new(&queue);
    for _ in 0..20 {
        hall.come(Priority::Request, "many");
    }
    hall.come(Priority::Request, "few");
    hall.come(Priority::Request, "few");
    assert_eq!(owners(&hall.finish()), ["few"]);
    // Now each has a slot.
    let next = [hall.finish(), hall.finish()].concat();
    let mut next = owners(&next);
    next.sort_unstable();
    assert_eq!(next, ["few", "many"]);
}

#[test]
fn those_who_come_back_at_once_do_not_starve_one_who_waits() {
    let bounds = Bounds { slots: 1, ..BOUNDS };
    let queue = FairQueue::new("test", bounds);
    let mut hall = QueueModel::new(&queue);
    hall.come(Priority::Request, "a");
    for _ in 0..10 {
        hall.come(Priority::Request, "a");
    }
    let mut got = Vec::new();
    for _ in 0..12 {
        // Both ask for one thing at a time, again and again.
        for owner in ["b", "c"] {
            let has = |claim: &Claim| &*claim.owner == owner;
            if !hall.waiting.iter().any(|(claim, _)| has(claim)) {
                hall.come(Priority::Request, owner);
            }
        }
        got.extend(hall.finish());
    }
    let of_a = owners(&got).iter().filter(|owner| **owner == "a").count();
    assert!((3..=5).contains(&of_a), "{got:?}");
}

#[test]
fn calls_come_first_and_background_leaves_them_room() {
    let queue = FairQueue::new("test", BOUNDS);
    let mut hall = QueueModel::new(&queue);
    for _ in 0..3 {
        hall.come(Priority::Background, "a");
    }
    assert_eq!(hall.served.len(), 1, "the background takes one of two");
    hall.come(Priority::Request, "a");
    assert_eq!(hall.served.len(), 2);
    hall.come(Priority::Request, "b");
    hall.come(Priority::Call, "c");
    let order = [hall.finish(), hall.finish(), hall.finish()].concat();
    assert_eq!(owners(&order), ["c", "b", "a"]);
}

#[test]
fn room_that_is_kept_is_for_calls_alone() {
    let queue = FairQueue::new("test", BOUNDS);
    let mut hall = QueueModel::new(&queue);
    for owner in ["a", "b", "c", "d"] {
        hall.come(Priority::Request, owner);
    }
    assert_eq!(hall.served.len(), 2);
    let rooms = [queue.keep_room(), queue.keep_room()];
    // Nobody is interrupted, and nobody takes the place of the first who ends.
    assert_eq!(hall.served.len(), 2);
    assert!(hall.finish().is_empty());
    hall.come(Priority::Call, "line");
    assert_eq!(hall.served.len(), 2);
    assert_eq!(owners(&hall.finish()), ["c"], "what is not kept is used");
    let [first, second] = rooms;
    drop(first);
    assert_eq!(hall.served.len(), 2);
    drop(hall.served.remove(0));
    assert!(hall.look().is_empty(), "one still keeps it");
    drop(second);
    assert_eq!(owners(&hall.look()), ["d"]);
    // With one slot there is none to keep.
    let queue = FairQueue::new("test", Bounds { slots: 1, ..BOUNDS });
    let _room = queue.keep_room();
    let mut hall = QueueModel::new(&queue);
    hall.come(Priority::Background, "a");
    assert_eq!(hall.served.len(), 1);
}

#[test]
fn who_finds_the_queue_full_is_told_at_once() {
    let bounds = Bounds {
        slots: 1,
        waiting: 3,
        waiting_of_owner: 2,
    };
    let queue = FairQueue::new("test", bounds);
    let mut hall = QueueModel::new(&queue);
    for _ in 0..4 {
        hall.come(Priority::Request, "a");
    }
    assert_eq!((hall.waiting.len(), hall.refused), (2, 1));
    hall.come(Priority::Request, "b");
    hall.come(Priority::Request, "c");
    assert_eq!((hall.waiting.len(), hall.refused), (3, 2));
    hall.come(Priority::Call, "a");
    hall.come(Priority::Call, "a");
    assert_eq!(hall.waiting.len(), 5, "nobody on the line is sent away");
    hall.waiting.pop();
    // Who goes away makes room.
    drop(hall.waiting.remove(0));
    hall.come(Priority::Request, "c");
    assert_eq!((hall.waiting.len(), hall.refused), (4, 2));
}

#[test]
fn what_was_begun_goes_on_before_what_is_new() {
    let bounds = Bounds {
        slots: 1,
        waiting: 2,
        waiting_of_owner: 2,
    };
    let queue = FairQueue::new("test", bounds);
    let mut hall = QueueModel::new(&queue);
    for _ in 0..4 {
        hall.come(Priority::Request, "a");
    }
    assert_eq!((hall.waiting.len(), hall.refused), (2, 1));
    for _ in 0..3 {
        hall.claim(Claim {
            is_continued: true,
            ..Claim::new(Priority::Request, "a")
        });
    }
    assert_eq!((hall.waiting.len(), hall.refused), (5, 1));
    hall.come(Priority::Request, "b");
    assert_eq!(hall.refused, 2);
    for _ in 0..3 {
        hall.finish();
        assert!(hall.served[0].0.is_continued);
    }
    hall.finish();
    assert!(!hall.served[0].0.is_continued);
}

#[test]
fn calls_of_one_owner_share_what_it_has() {
    let queue = FairQueue::new("test", Bounds { slots: 1, ..BOUNDS });
    let mut hall = QueueModel::new(&queue);
    let of_call = |call: &str| Claim::new(Priority::Call, "a").of_call(call);
    for _ in 0..10 {
        hall.claim(of_call("talks a lot"));
    }
    // What one has begun is no reason to let another wait.
    for _ in 0..10 {
        hall.claim(Claim {
            is_continued: true,
            ..of_call("talks on")
        });
    }
    hall.claim(of_call("is new"));
    hall.claim(of_call("is new"));
    hall.claim(Claim::new(Priority::Call, "b"));
    let mut order = Vec::new();
    for _ in 0..8 {
        hall.finish();
        let claim = &hall.served[0].0;
        order.push(claim.call.as_deref().unwrap_or("b").to_owned());
    }
    let (first, rest) = order.split_at(1);
    assert_eq!(first, ["b"], "partners come first");
    let count = |call: &str| rest.iter().filter(|served| *served == call).count();
    assert_eq!(count("is new"), 2, "{order:?}");
    assert_eq!(order.iter().position(|call| call == "talks on"), Some(1));
    assert_eq!(order.iter().position(|call| call == "is new"), Some(2));
    assert!(count("talks a lot") >= 2, "{order:?}");
}

#[derive(Debug, Clone)]
enum Event {
    Come(Priority, u8, Option<u8>),
    Finish(usize),
    GoAway(usize),
    KeepRoom,
    GiveRoom,
}

fn event() -> impl Strategy<Value = Event> {
    let priority = prop_oneof![
        Just(Priority::Call),
        Just(Priority::Request),
        Just(Priority::Background)
    ];
    prop_oneof![
        3 => (priority, 0..4_u8, proptest::option::of(0..3_u8))
            .prop_map(|(priority, owner, call)| Event::Come(priority, owner, call)),
        2 => any::<usize>().prop_map(Event::Finish),
        1 => any::<usize>().prop_map(Event::GoAway),
        1 => Just(Event::KeepRoom),
        1 => Just(Event::GiveRoom),
    ]
}

proptest! {
    #[test]
    fn slots_are_never_too_many_nor_idle(
        slots in 1..5_usize,
        events in proptest::collection::vec(event(), 1..120),
    ) {
        let bounds = Bounds { slots, waiting: 8, waiting_of_owner: 5 };
        let queue = FairQueue::new("test", bounds);
        let mut hall = QueueModel::new(&queue);
        let mut rooms = Vec::new();
        for event in events {
            let mut before = hall.served.len();
            match event {
                Event::Come(priority, owner, call) => hall.claim(Claim {
                    call: call.map(|call| call.to_string().into()),
                    ..Claim::new(priority, &owner.to_string())
                }),
                Event::Finish(index) if !hall.served.is_empty() => {
                    let index = index % hall.served.len();
                    drop(hall.served.remove(index));
                    before -= 1;
                }
                // Also between the grant and the look at it.
                Event::GoAway(index) if !hall.waiting.is_empty() => {
                    let index = index % hall.waiting.len();
                    drop(hall.waiting.remove(index));
                }
                Event::KeepRoom => rooms.push(queue.keep_room()),
                Event::GiveRoom => drop(rooms.pop()),
                _ => {}
            }
            hall.look();
            let keeps_room = !rooms.is_empty();
            let (most, most_background) =
                (bounds.other_slots(keeps_room), bounds.background_slots(keeps_room));
            let served = |priority| hall.served.iter().filter(move |(claim, _)| claim.priority == priority);
            let background = served(Priority::Background).count();
            let others = hall.served.len() - served(Priority::Call).count();
            prop_assert!(hall.served.len() <= slots);
            // Who has a slot keeps it when room is kept, and nobody takes one of those then.
            let newly = hall.served.iter().skip(before);
            for (claim, _) in newly {
                prop_assert!(claim.priority == Priority::Call || others <= most);
                prop_assert!(claim.priority != Priority::Background || background <= most_background);
            }
            prop_assert_eq!(queue.waiting(), hall.waiting.len());
            // Nobody waits for a slot that is free.
            if hall.served.len() < slots {
                let waits = |priority| hall.waiting.iter().any(|(claim, _)| claim.priority == priority);
                prop_assert!(!waits(Priority::Call));
                prop_assert!(!waits(Priority::Request) || others >= most);
                prop_assert!(!waits(Priority::Background) || others >= most || background >= most_background);
            }
            for priority in [Priority::Request, Priority::Background] {
                let waiting = hall.waiting.iter().filter(|(claim, _)| claim.priority == priority);
                prop_assert!(waiting.count() <= bounds.waiting);
            }
        }
        hall.waiting.clear();
        hall.served.clear();
        rooms.clear();
        let state = queue.lock();
        prop_assert_eq!((state.taken, state.taken_by_calls, state.taken_by_background), (0, 0, 0));
        prop_assert_eq!((state.rooms, state.owners.len()), (0, 0));
    }
}
