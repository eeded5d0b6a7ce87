//! The collector: empties the ring buffer, orders events, hands them to the sinks.

use std::{
    collections::VecDeque,
    ffi::OsString,
    sync::mpsc::{SyncSender, TrySendError, sync_channel},
    thread,
    time::Duration,
};

use nix::{sys::signal::Signal, unistd::Pid};
use tokio::{
    io::unix::AsyncFd,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use super::{
    Options, RecordError,
    attach::Arguments,
    charge,
    group::Target,
    load::{Loaded, StderrLog},
    losses::{Losses, full_tables},
    prepare::{Prepared, prepare, start},
    redact,
    ring::{Ring, watch},
    running::{Running, ended, pass_on},
    signals::Signals,
    sink::{Message, Sink, run_sink},
    sorter::Sorter,
    survivors,
    until::{self, After, Stop},
    verify::Verifier,
};
use crate::{
    decode::Decoder,
    event::{Event, Recording, What},
    host::facts,
    units::ProcessKey,
};

/// How often the buffer is emptied without being asked to.
const DRAIN_EVERY: Duration = Duration::from_millis(50);
/// How often losses are looked at and sinks may put things in safety. With the time that events are
/// held and the time to write them, a kill costs less than a second.
const TICK_EVERY: Duration = Duration::from_millis(400);
/// How often it is looked who is left, while that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long the kernel may take to free the last process: an RCU grace period, of 10 to 50 ms or, on a
/// busy host, more than 100. What a process has used is known only then.
const SETTLE: Duration = Duration::from_millis(300);
/// How long a last comparison with `/proc` may take: one with a lot of memory is read for seconds.
const VERIFY_END: Duration = Duration::from_secs(2);
/// Batches on their way to the sinks; more than that, and the ring buffer has to hold them.
const BATCHES: usize = 16;
/// How long the pieces of an argument list are waited for, ns: less than events are held, so that
/// the exec still comes in order.
const GIVE_UP_NS: u64 = 50_000_000;
/// Records taken from the ring buffer before signals and timers have their turn.
const DRAIN_RECORDS: usize = 1 << 15;

/// How a recording ended.
pub struct Outcome<S> {
    /// Everything that is known of the recording.
    pub recording: Recording,
    /// The sinks, for them to be finished.
    pub sink: S,
    /// The command.
    pub command: Running,
}

/// Records: a command that it runs, processes that are there, or both. Without `words` there is no command.
///
/// `make_sink` is called once the command's exec has succeeded: until then nothing may be written.
///
/// # Errors
/// If the kernel side can't be put in place, the command can't be started, or a process that was named can't be
/// recorded. Once the command runs, its end is waited for whatever happens, unless the recording is to end before it.
pub fn record<S: Sink + 'static>(
    words: &[OsString],
    options: &Options,
    make_sink: impl FnOnce(&Recording) -> S,
) -> Result<Outcome<S>, RecordError> {
    let Prepared {
        mut loaded,
        child,
        charge,
        arguments,
        target,
        kept,
        deadline,
        recording,
    } = prepare(words, options)?;
    let ring = loaded.take_ring()?;
    let log = options.debug.then(|| loaded.start_log()).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| RecordError::system("cannot start the collector", error))?;
    let pid = child.as_ref().map(|child| child.pid);
    let result: Result<_, RecordError> = runtime.block_on(async {
        // Before the command can end or the terminal can send anything.
        let mut signals = Signals::new()?;
        let ring = watch(ring)?;
        if let Some(child) = child {
            start(child, &loaded)?;
        }
        let sink = make_sink(&recording);
        let (to_sinks, from_collector) = sync_channel(BATCHES);
        let worker = thread::spawn(move || run_sink(sink, &from_collector));
        let verifier = kept.map(|kept| Verifier::start(kept, loaded.exactness));
        let collector = Collector {
            verifier,
            decoder: Decoder::new(recording.page_size, options.kept_variables.clone()),
            sorter: Sorter::default(),
            losses: Losses::default(),
            loaded,
            log,
            ring,
            to_sinks,
            unsent: VecDeque::new(),
            has_more: false,
            keep_arguments: options.keep_arguments,
            charge,
            arguments,
            target,
            deadline,
            after: options.until.after,
            is_whole_host: options.attach.whole_host,
            recording,
        };
        let recording = collector.run(pid, &mut signals).await;
        Ok((recording, worker, signals))
    });
    let (recording, worker, signals) = result?;
    let sink = worker.join().map_err(|_panic| {
        RecordError::system("the writer failed", std::io::Error::other("it panicked"))
    })?;
    let command = match (recording.exit_status, pid) {
        (Some(status), _) => Running::ended(status),
        (None, Some(pid)) => Running::still(runtime, signals, pid),
        (None, None) => Running::none(),
    };
    Ok(Outcome {
        recording,
        sink,
        command,
    })
}

struct Collector {
    verifier: Option<Verifier>,
    decoder: Decoder,
    sorter: Sorter,
    losses: Losses,
    loaded: Loaded,
    log: Option<aya_log::EbpfLogger<StderrLog>>,
    ring: AsyncFd<Ring>,
    to_sinks: SyncSender<Message>,
    /// What the sinks had no room for.
    unsent: VecDeque<Message>,
    /// The last look at the ring buffer left something in it.
    has_more: bool,
    keep_arguments: bool,
    charge: Option<charge::Watch>,
    /// When the recording ends whatever still runs.
    deadline: Option<Instant>,
    after: After,
    /// There is always somebody alive.
    is_whole_host: bool,
    /// Of processes that were there already.
    arguments: Arguments,
    /// The control group that is recorded.
    target: Option<Target>,
    recording: Recording,
}

impl Collector {
    async fn run(mut self, pid: Option<Pid>, signals: &mut Signals) -> Recording {
        let stop = match pid {
            Some(pid) => self.record(pid, signals).await,
            None => self.watch(signals).await,
        };
        if matches!(stop, Stop::Command(_) | Stop::Gone) && !self.is_whole_host {
            if self.after.waits_for_all() {
                self.wait_for_all(signals).await;
            }
            self.finish_verifier();
            self.linger().await;
        }
        self.finish_verifier();
        self.wait_for_verifier().await;
        self.finish(stop)
    }

    /// Records until the command has ended or time is up.
    async fn record(&mut self, pid: Pid, signals: &mut Signals) -> Stop {
        let mut drain = interval(DRAIN_EVERY);
        let mut tick = interval(TICK_EVERY);
        drain.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = self.deadline;
        loop {
            tokio::select! {
                ready = self.ring.readable() => {
                    if let Ok(mut guard) = ready {
                        guard.clear_ready();
                    }
                    self.drain();
                }
                _ = drain.tick() => self.drain(),
                () = tokio::task::yield_now(), if self.has_more => self.drain(),
                _ = tick.tick() => self.tick(),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    return Stop::Time;
                }
                _ = signals.child.recv() => {
                    if let Some(end) = ended(pid) {
                        return Stop::Command(end);
                    }
                }
                // The terminal sends these two to the command itself.
                _ = signals.interrupt.recv() => {}
                _ = signals.quit.recv() => {}
                _ = signals.terminate.recv() => pass_on(pid, Signal::SIGTERM),
                _ = signals.hangup.recv() => pass_on(pid, Signal::SIGHUP),
            }
        }
    }

    /// Records processes that were there until none is left, time is up, or somebody wants it to end.
    async fn watch(&mut self, signals: &mut Signals) -> Stop {
        let mut drain = interval(DRAIN_EVERY);
        let mut tick = interval(TICK_EVERY);
        drain.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let deadline = self.deadline;
        loop {
            tokio::select! {
                ready = self.ring.readable() => {
                    if let Ok(mut guard) = ready {
                        guard.clear_ready();
                    }
                    self.drain();
                }
                _ = drain.tick() => {
                    self.drain();
                    if self.is_nobody_left() {
                        return Stop::Gone;
                    }
                }
                () = tokio::task::yield_now(), if self.has_more => self.drain(),
                _ = tick.tick() => self.tick(),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    return Stop::Time;
                }
                () = signals.asked_to_end() => return Stop::Asked,
            }
        }
    }

    /// Whether nobody is left of those who are recorded, and nobody can come.
    fn is_nobody_left(&mut self) -> bool {
        if self.is_whole_host {
            return false;
        }
        let any_alive = survivors::any_alive(&self.loaded);
        match &mut self.target {
            Some(target) => target.is_over(any_alive, std::time::Instant::now()),
            None => !any_alive,
        }
    }

    /// Records until the last descendant has ended, time is up, or somebody wants it to end.
    async fn wait_for_all(&mut self, signals: &mut Signals) {
        let since_ns = facts::boot_ns();
        let end = until::earlier(self.after.deadline(), self.deadline);
        let mut look = interval(LOOK_EVERY);
        let mut tick = interval(TICK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while survivors::any_alive(&self.loaded) && end.is_none_or(|end| Instant::now() < end) {
            tokio::select! {
                _ = look.tick() => self.drain(),
                _ = tick.tick() => {
                    self.tick();
                    // See `tick`.
                    let _busy = self.to_sinks.try_send(Message::Waiting(since_ns));
                }
                () = signals.asked_to_end() => return,
            }
        }
    }

    fn finish_verifier(&mut self) {
        if let Some(verifier) = &mut self.verifier {
            verifier.finish_soon();
        }
    }

    /// Waits until the last comparison is done, unless that takes too long: then it doesn't count.
    async fn wait_for_verifier(&mut self) {
        let end = Instant::now() + VERIFY_END;
        let is_at_work = |this: &Self| {
            let verifier = this.verifier.as_ref();
            verifier.is_some_and(|verifier| !verifier.is_finished())
        };
        while is_at_work(self) && Instant::now() < end {
            sleep_until(Instant::now() + Duration::from_millis(4)).await;
            self.drain();
        }
    }

    fn note_verification(&mut self) {
        if let Some(verifier) = &self.verifier {
            self.recording.verification = Some(verifier.found());
        }
    }

    /// Waits for descendants that are about to leave, and for the kernel to free the dead.
    async fn linger(&mut self) {
        let end = until::earlier(Some(Instant::now() + until::LINGER), self.deadline);
        let is_before = |end: Option<Instant>| end.is_none_or(|end| Instant::now() < end);
        while survivors::any_alive(&self.loaded) && is_before(end) {
            sleep_until(Instant::now() + LOOK_EVERY).await;
            self.drain();
        }
        let end = Instant::now() + SETTLE;
        while !self.loaded.tracked().is_empty()
            && !survivors::any_alive(&self.loaded)
            && Instant::now() < end
        {
            sleep_until(Instant::now() + Duration::from_millis(4)).await;
        }
        self.drain();
    }

    /// Takes records from the ring buffer and passes on what is in order. While the sinks are busy
    /// they stay where they are, and what finds no room there is counted as lost.
    fn drain(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
        self.look_at_charge();
        self.push_unsent();
        self.has_more = false;
        if self.unsent.is_empty() {
            let ready = self.take_records();
            self.send(ready);
        }
    }

    fn take_records(&mut self) -> Vec<Event> {
        // Taken before: whatever is older than this less the hold has been read once the buffer is empty.
        let mut limit_ns = facts::boot_ns();
        let Self {
            ring,
            decoder,
            sorter,
            arguments,
            loaded,
            target,
            ..
        } = self;
        for n in 0.. {
            if n == DRAIN_RECORDS {
                // Still filling: only as far as what has been read.
                self.has_more = true;
                limit_ns = sorter.newest_ns();
                break;
            }
            let Some(record) = ring.get_mut().0.next() else {
                break;
            };
            decoder.push(&record, |event| {
                if target.is_some() {
                    arguments.look_at(loaded, &event);
                }
                sorter.push(event);
            });
        }
        decoder.give_up_before(limit_ns.saturating_sub(GIVE_UP_NS), |event| {
            sorter.push(event);
        });
        let mut ready = Vec::new();
        sorter.release(limit_ns, &mut ready);
        self.complete(&mut ready);
        ready
    }

    /// Adds what `/proc` told, and hides secrets.
    fn complete(&mut self, events: &mut [Event]) {
        for event in events {
            self.arguments.complete(event);
            if self.keep_arguments {
                continue;
            }
            match &mut event.what {
                What::Exec(exec) => redact::hide(&mut exec.argv),
                What::Title(title) => redact::hide_in_title(&mut title.words),
                What::Snapshot(snapshot) => {
                    let found = snapshot.found.as_mut();
                    if let Some(argv) = found.and_then(|found| found.argv.as_mut()) {
                        redact::hide(argv);
                    }
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        self.learn_root(&events);
        self.learn_first(&events);
        self.unsent.push_back(Message::Events(events));
        self.push_unsent();
    }

    /// Hands over what the sinks have room for.
    fn push_unsent(&mut self) {
        while let Some(message) = self.unsent.pop_front() {
            match self.to_sinks.try_send(message) {
                Err(TrySendError::Full(message)) => {
                    self.unsent.push_front(message);
                    return;
                }
                // Gone: their thread panicked, which `record` reports at the end; the command must not suffer.
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            }
        }
    }

    /// The command's start is known from its first exec.
    fn learn_root(&mut self, events: &[Event]) {
        if self.recording.root_start_ns != 0 {
            return;
        }
        let root = self.recording.root_pid;
        let first = events.iter().find_map(|event| {
            let ProcessKey { pid, start_ns } = event.subject?.process;
            (pid == root && matches!(event.what, What::Exec(_))).then_some(start_ns)
        });
        if let Some(start_ns) = first {
            self.recording.root_start_ns = start_ns;
        }
    }

    /// Where a control group is waited for, the recording begins with its first process.
    fn learn_first(&mut self, events: &[Event]) {
        let Some(target) = &mut self.target else {
            return;
        };
        let first = events.iter().find(|event| event.subject.is_some());
        if let (None, Some(event)) = (target.recorded.first_ns, first) {
            target.recorded.first_ns = Some(event.time_ns);
            self.recording.start_ns = event.time_ns;
        }
        target.look(&self.loaded);
        self.recording.group = Some(target.recorded.clone());
    }

    /// For the end, when waiting does no harm any more.
    fn wait_and_send(&mut self, events: Vec<Event>) {
        self.learn_root(&events);
        self.learn_first(&events);
        self.unsent.push_back(Message::Events(events));
        for message in self.unsent.drain(..) {
            // See `push_unsent`.
            let _gone = self.to_sinks.send(message);
        }
    }

    /// What only the loaded programs and maps know. Once they are detached, they don't any more.
    fn read_counters(&mut self) {
        let mut misses = self.loaded.recursion_misses();
        if !misses.is_empty() {
            misses.retain(|_, count| *count > 0);
            self.recording.recursion_misses = misses;
        }
        self.recording.full_maps = full_tables(&self.loaded);
        self.recording.unsettled_looks = self.loaded.counters("UNSETTLED").concat().iter().sum();
        if let Some(sums) = self.loaded.tree_sums() {
            let page = self.recording.page_size;
            let bytes = |pages: i64| u64::try_from(pages).unwrap_or(0).saturating_mul(page);
            self.recording.peak_rss_sum_bytes = Some(bytes(sums.peak_rss));
            self.recording.peak_rss_sum_ns = Some(sums.peak_rss_ns);
            self.recording.peak_vms_sum_bytes = Some(bytes(sums.peak_vm));
        }
    }

    fn look_at_charge(&mut self) {
        if let (Some(charge), Some(state)) = (&mut self.charge, self.loaded.charge()) {
            charge.look(&state, self.recording.page_size);
        }
    }

    fn look_at_losses(&mut self) {
        if let Some(loss) = self.losses.look(&self.loaded) {
            self.recording.lost = self.losses.total();
            self.recording.lost_by_cpu = self.losses.by_cpu();
            self.sorter.push(Event {
                time_ns: facts::boot_ns(),
                cpu: 0,
                subject: None,
                what: What::Loss(loss),
            });
        }
    }

    fn tick(&mut self) {
        self.look_at_losses();
        // A recorder that is killed has said so far what it knew.
        self.read_counters();
        self.recording.charge = self.charge.as_ref().map(charge::Watch::charge);
        self.note_verification();
        // One that finds no room isn't missed: the next comes soon.
        let _busy = self
            .to_sinks
            .try_send(Message::Tick(Box::new(self.recording.clone())));
    }

    fn finish(mut self, stop: Stop) -> Recording {
        self.note_verification();
        let end = match stop {
            Stop::Command(end) => Some(end),
            Stop::Time | Stop::Gone | Stop::Asked => None,
        };
        if let Some(found) = &mut self.recording.verification {
            found.max_rss_bytes = end.map(|end| end.max_rss_bytes);
        }
        if survivors::any_alive(&self.loaded) {
            // Nothing may happen between the last look at the buffer and the look at who is left.
            // It takes some ten milliseconds, so not where nobody can do anything any more.
            self.read_counters();
            self.loaded.detach();
        }
        let snapshots = survivors::snapshots(&self.loaded);
        self.look_at_charge();
        if let Some(charge) = &mut self.charge {
            charge.finish();
            self.recording.charge = Some(charge.charge());
        }
        loop {
            let ready = self.take_records();
            self.wait_and_send(ready);
            if !self.has_more {
                break;
            }
            self.has_more = false;
        }
        self.look_at_losses();
        let Self {
            decoder, sorter, ..
        } = &mut self;
        decoder.finish(|event| sorter.push(event));
        for event in snapshots {
            sorter.push(event);
        }
        let mut rest = Vec::new();
        sorter.finish(&mut rest);
        self.complete(&mut rest);
        self.wait_and_send(rest);
        self.read_counters();
        self.recording.end_ns = Some(facts::boot_ns());
        self.recording.exit_status = end.map(|end| end.status);
        self.recording.lost = self.losses.total();
        if self.decoder.malformed() > 0 {
            self.recording
                .lost
                .insert("malformed".to_owned(), self.decoder.malformed());
        }
        self.recording.late_events = self.sorter.late();
        self.recording
    }
}
