//! A command of the user's that prints a number a line: any meter that has a program.
//!
//! It may run on and print, or print once and end: then it is started again. It is ended, with all that it started, when
//! nobody reads it any more, and killed by the kernel should rackscope die.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use super::background::Pace;
use super::file::{LONGEST_NUMBER, number, shorten};
use super::found::Found;
use super::meter::{About, Meter};
use super::sheet::Sheet;
use super::spec::{CommandSpec, duration};
use crate::readers::Reader;

const NEEDS: &str = "a command that prints a number a line";

/// What is looked at in one reading: of a command that prints on and on, the rest waits.
const MOST_BYTES: usize = 64 * 1024;
/// What is kept of its complaints.
const MOST_COMPLAINT: usize = 200;
/// How long a wait lasts at most before a stop is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

struct Printer {
    spec: CommandSpec,
    running: Option<Running>,
}

pub(super) fn build(spec: &CommandSpec) -> Box<dyn Reader> {
    let found = Found {
        about: About::new("command", NEEDS).of(&spec.measured.domain),
        channels: vec![spec.measured.channel()],
        meter: Box::new(Printer {
            spec: spec.clone(),
            running: None,
        }),
    };
    let timeout = duration(spec.timeout_seconds);
    found.in_background(Pace::of_waiting(duration(spec.interval_seconds), timeout))
}

/// What came of waiting for a line.
enum Heard {
    Line(Vec<u8>),
    End,
}

impl Printer {
    fn program(&self) -> &str {
        self.spec.arguments.first().map_or("", String::as_str)
    }

    fn number(&mut self, is_stopped: impl Fn() -> bool) -> Result<f64, String> {
        let deadline = Instant::now() + duration(self.spec.timeout_seconds);
        // One that has printed before and ended well is started once more, not again and again.
        for _ in 0..2 {
            let mut running = match self.running.take() {
                Some(running) => running,
                None => Running::start(&self.spec.arguments)
                    .map_err(|error| format!("cannot start {}: {error}", self.program()))?,
            };
            match self.line(&mut running, deadline, &is_stopped)? {
                Heard::Line(line) => {
                    running.has_printed = true;
                    self.running = Some(running);
                    return number(&line).ok_or_else(|| {
                        let (program, line) = (self.program(), shorten(&line));
                        format!("{program} printed '{line}', which is not a number")
                    });
                }
                Heard::End => {
                    let has_printed = running.has_printed;
                    let complaint = running.complaint();
                    let status = running.end().map_err(|error| self.unreadable(&error))?;
                    if !(has_printed && status.success()) {
                        let program = self.program();
                        return Err(format!(
                            "{program} ended ({status}) without a number{complaint}"
                        ));
                    }
                }
            }
        }
        Err(self.stopped())
    }

    fn unreadable(&self, error: &io::Error) -> String {
        format!("cannot read what {} prints: {error}", self.program())
    }

    fn stopped(&self) -> String {
        format!("{} was ended", self.program())
    }

    /// The last of the lines that are there, or the first that comes.
    fn line(
        &self,
        running: &mut Running,
        deadline: Instant,
        is_stopped: &impl Fn() -> bool,
    ) -> Result<Heard, String> {
        let mut seen = 0;
        let mut last = None;
        loop {
            let more = running
                .take(&mut seen)
                .map_err(|error| self.unreadable(&error))?;
            if let Some(line) = running.last_line() {
                last = Some(line);
            }
            if running.printed.len() > LONGEST_NUMBER {
                return Err(format!(
                    "{} printed a line of more than {LONGEST_NUMBER} bytes, and was ended",
                    self.program()
                ));
            }
            match (last.take(), more) {
                // What else is there already is later still.
                (line, More::Now) if seen < MOST_BYTES => last = line,
                (Some(line), _) => return Ok(Heard::Line(line)),
                (None, More::End) if !running.printed.is_empty() => {
                    return Ok(Heard::Line(std::mem::take(&mut running.printed)));
                }
                (None, More::End) => return Ok(Heard::End),
                (None, _) => {}
            }
            if last.is_some() {
                continue;
            }
            if is_stopped() {
                return Err(self.stopped());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!(
                    "{} printed no number within {} s, and was ended{}",
                    self.program(),
                    self.spec.timeout_seconds,
                    running.complaint()
                ));
            }
            running
                .wait(left.min(LONGEST_WAIT))
                .map_err(|error| self.unreadable(&error))?;
        }
    }
}

/// Whether a command has printed more than was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Now,
    Later,
    End,
}

/// A command that was started; it ends with this.
struct Running {
    child: Child,
    output: File,
    /// None once it was closed.
    errors: Option<File>,
    /// What was printed of a line that is not ended.
    printed: Vec<u8>,
    complained: Vec<u8>,
    has_printed: bool,
}

impl Running {
    fn start(arguments: &[String]) -> io::Result<Self> {
        let (program, rest) = arguments.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command
            .args(rest)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // So that what it starts ends with it.
            .process_group(0);
        // SAFETY: between fork and exec only this one system call is made, which takes plain numbers and is safe there.
        unsafe {
            command.pre_exec(|| {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 {
                    Ok(())
                } else {
                    Err(io::Error::last_os_error())
                }
            });
        }
        let mut child = command.spawn()?;
        let output = child.stdout.take().map(OwnedFd::from);
        let errors = child.stderr.take().map(OwnedFd::from);
        let (Some(output), Some(errors)) = (output, errors) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        for pipe in [output.as_fd(), errors.as_fd()] {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(Self {
            child,
            output: output.into(),
            errors: Some(errors.into()),
            printed: Vec::new(),
            complained: Vec::new(),
            has_printed: false,
        })
    }

    /// Takes some of what was printed.
    fn take(&mut self, seen: &mut usize) -> io::Result<More> {
        self.take_errors();
        let mut bytes = [0; 1024];
        match self.output.read(&mut bytes) {
            Ok(0) => Ok(More::End),
            Ok(length) => {
                *seen += length;
                self.printed.extend_from_slice(&bytes[..length]);
                Ok(More::Now)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(More::Later),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(More::Now),
            Err(error) => Err(error),
        }
    }

    fn take_errors(&mut self) {
        let Some(errors) = &mut self.errors else {
            return;
        };
        let mut bytes = [0; 1024];
        match errors.read(&mut bytes) {
            Ok(0) => self.errors = None,
            Ok(length) => {
                let room = MOST_COMPLAINT.saturating_sub(self.complained.len());
                self.complained
                    .extend_from_slice(&bytes[..length.min(room)]);
            }
            // Nothing now; or nothing ever, which is no reason to stop reading its numbers.
            Err(_) => {}
        }
    }

    /// The last whole line of what was printed; those before it are forgotten.
    fn last_line(&mut self) -> Option<Vec<u8>> {
        let end = memchr::memrchr(b'\n', &self.printed)?;
        let start = memchr::memrchr(b'\n', &self.printed[..end]).map_or(0, |before| before + 1);
        let line = self.printed[start..end].to_vec();
        self.printed.drain(..=end);
        Some(line)
    }

    fn wait(&self, most: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(most).unwrap_or_default();
        let mut files = vec![PollFd::new(&self.output, PollFlags::IN)];
        files.extend(
            self.errors
                .iter()
                .map(|errors| PollFd::new(errors, PollFlags::IN)),
        );
        match poll(&mut files, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The first line that it complained of, as the end of a sentence.
    fn complaint(&mut self) -> String {
        self.take_errors();
        let line = self.complained.split(|byte| *byte == b'\n').next();
        match line.map(|line| {
            String::from_utf8_lossy(line)
                .trim()
                .escape_debug()
                .to_string()
        }) {
            Some(line) if !line.is_empty() => format!(": {line}"),
            _ => String::new(),
        }
    }

    /// Ends it with all of its process group, and tells how it ended.
    fn end(mut self) -> io::Result<ExitStatus> {
        // A command that has closed its output is about to end: how it does so is worth a moment.
        let deadline = Instant::now() + LONGEST_WAIT;
        while Instant::now() < deadline {
            if self.has_ended() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.kill();
        self.child.wait()
    }

    /// Whether it has ended; it is not waited for, so that its number stays its own.
    fn has_ended(&self) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let pid = Pid::from_child(&self.child);
        matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_)) | Err(_))
    }

    fn kill(&self) {
        // It was not waited for yet, so the number is that of its group and nobody else's. That there is nobody left of
        // it is as well.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.kill();
            // Killed: it ends now, and what it ended with tells nothing.
            let _ = self.child.wait();
        }
    }
}

impl Meter for Printer {
    fn read(&mut self, sheet: &mut Sheet) {
        let stop = sheet.stop();
        match self.number(|| stop.load(Ordering::Relaxed)) {
            Ok(number) => sheet.say(0, self.spec.measured.number(number), None),
            Err(why) => sheet.fail(|| why),
        }
    }
}

#[cfg(test)]
mod tests;
