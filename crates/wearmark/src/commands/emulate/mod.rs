//! `wearmark emulate`

mod orders;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use ::emulate::{
    Emulation, Error, Export, Fate, Faults, Options, Outcome as Served, Served as Device,
};
use events::{Ending, Event, Sink as _, Warning};
use profile::Profile;
use serde::Serialize;
use study::host_stack::Devices;
use study::profiles::read_device;
use units::Nanos;

use super::{Context, Outcome, output};
use orders::Orders;

use crate::cli::{Emulate, EmulateOrder};
use crate::failure::Advice;
use crate::signals;

const STAGE: &str = "emulate";
/// Pace of looking whether to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Pace of telling what the devices do.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// Why the serving ended.
enum End {
    Time,
    PowerCut,
    Stopped,
    Command(ExitStatus),
}

/// Serves the devices until it is time, or gives orders to those that are served.
pub fn run(arguments: &Emulate, context: &Context) -> anyhow::Result<Outcome> {
    match &arguments.order {
        Some(EmulateOrder::Set(arguments)) => orders::set(arguments),
        Some(EmulateOrder::Status(arguments)) => orders::status(arguments, context),
        None => serve_devices(arguments, context),
    }
}

fn serve_devices(arguments: &Emulate, context: &Context) -> anyhow::Result<Outcome> {
    signals::stand_before_others();
    let mut orders = Orders::new(arguments.no_cache, arguments.seed);
    let options = Options {
        spin: arguments.spin,
        path: arguments.path,
        sleeps: arguments.sleep,
        forgetful: arguments.power_cut.is_some(),
        faults: Faults {
            fail_after: arguments.fail_after,
            fail_range: arguments.fail_range.clone(),
            stall: arguments.stall.clone().map(|stall| Nanos(stall.start)..Nanos(stall.end)),
        },
    };
    let devices = devices(arguments, &options.faults, &mut orders)?;
    let places: Vec<Option<PathBuf>> =
        devices.iter().map(|device| device.directories.first().cloned()).collect();
    raise_file_limit();
    orders.listen(&places)?;
    let emulation = Emulation::start(devices, &options)?;
    for path in emulation.left_over() {
        let message = format!("{}: took away a mount that was left over", path.display());
        context.view.emit(Event::Warning(Warning::new(STAGE, "mount_left_over", message)));
    }
    for block in emulation.blocks() {
        eprintln!("{STAGE:>9} {}", block.display());
    }
    let started = Instant::now();
    let end = serve(arguments, &emulation, &mut orders, context)?;
    let fate = arguments.torn.map_or(Fate::All, |seed| Fate::Some { seed });
    let served = match end {
        End::PowerCut => emulation.cut_power(fate)?,
        _ => emulation.stop()?,
    };
    let outcome = match &end {
        End::Stopped if arguments.time.is_some() || !arguments.command.is_empty() => {
            Outcome::Interrupted
        }
        End::Command(status) if !status.success() => Outcome::Finding,
        _ => Outcome::Fine,
    };
    let ending =
        if outcome == Outcome::Interrupted { Ending::Interrupted } else { Ending::Complete };
    let elapsed_s = started.elapsed().as_secs_f64();
    context.view.emit(Event::Done { stage: STAGE.to_owned(), elapsed_s, ending });
    show(served, elapsed_s, context)?;
    if let End::Command(status) = end
        && !status.success()
    {
        eprintln!("the command ended with {status}");
    }
    Ok(outcome)
}

/// One device for all directories, or one for each.
fn devices(
    arguments: &Emulate,
    faults: &Faults,
    orders: &mut Orders,
) -> anyhow::Result<Vec<Device>> {
    let (profiles, places) = (
        arguments.profile.len(),
        arguments.dir.len() + arguments.nbd.len() + arguments.block.len(),
    );
    if profiles != 1 && profiles != places {
        return Err(Advice::error(
            format!("{profiles} profiles for {places} places"),
            "name one profile for all, or one for each: directories, then sockets, then blocks",
        ));
    }
    if !matches!(arguments.host.len(), 0 | 1) && arguments.host.len() != profiles {
        return Err(Advice::error(
            format!("{} hosts for {profiles} profiles", arguments.host.len()),
            "name one host for all, or one for each profile, 'none' where there is none",
        ));
    }
    let mut devices: Vec<Device> = Vec::new();
    for (index, name) in arguments.profile.iter().enumerate() {
        let profile: Profile = read_device(name)?;
        let served = if arguments.no_cache { profile.without_cache() } else { profile.clone() };
        let host = arguments.host.get(index).or(arguments.host.first());
        let host = host.filter(|path| path.as_os_str() != "none");
        let kernel = "the page cache and the file system are those of this machine";
        let host = crate::commands::devices_of(host.map(PathBuf::as_path), kernel)?;
        let above = Devices::new(served, host.as_ref())?;
        let twin = arguments.profile[..index].contains(name);
        let name = if twin { format!("{name}-{}", index + 1) } else { name.clone() };
        orders.add(&name, profile, host, faults);
        devices.push(Device {
            name,
            device: above.device(arguments.seed),
            directories: Vec::new(),
            exports: Vec::new(),
            blocks: Vec::new(),
        });
    }
    let at = |index: usize| if profiles == 1 { 0 } else { index };
    for (index, path) in arguments.dir.iter().enumerate() {
        let path = path.canonicalize().map_err(study::Error::io(path, "open"))?;
        devices[at(index)].directories.push(path);
    }
    for (index, socket) in arguments.nbd.iter().enumerate() {
        let (file, size) = (arguments.file.get(index).cloned(), arguments.size);
        let export = Export { socket: socket.clone(), file, size };
        devices[at(arguments.dir.len() + index)].exports.push(export);
    }
    for (index, directory) in arguments.block.iter().enumerate() {
        let device = at(arguments.dir.len() + arguments.nbd.len() + index);
        block(directory, arguments.size, &mut devices[device])?;
    }
    Ok(devices)
}

/// A directory with the file that becomes a loop device; the file is made sparse if it is not
/// there.
fn block(directory: &Path, size: Option<units::Bytes>, device: &mut Device) -> anyhow::Result<()> {
    if let Some((cause, hint)) = ::emulate::blocks_missing() {
        return Err(Advice::error(cause, hint));
    }
    let directory = directory.canonicalize().map_err(study::Error::io(directory, "open"))?;
    let file = directory.join("disk");
    if !file.exists() {
        let size = size.or(device.device.capacity()).map_or(1 << 30, |size| size.0);
        let made = std::fs::File::create(&file).and_then(|made| made.set_len(size));
        made.map_err(study::Error::io(&file, "create"))?;
    }
    device.directories.push(directory);
    device.blocks.push(file);
    Ok(())
}

/// The program that was asked for, in the process group of its own so that it ends before us.
struct Running(Child);

impl Running {
    fn start(words: &[std::ffi::OsString]) -> anyhow::Result<Option<Self>> {
        let Some((program, arguments)) = words.split_first() else { return Ok(None) };
        let child = Command::new(program).args(arguments).spawn().map_err(|error| {
            Advice::error(
                format!("{}: {error}", program.to_string_lossy()),
                "name a program that can be run after '--'",
            )
        })?;
        Ok(Some(Self(child)))
    }

    /// Asks it to end, then makes it.
    fn end(&mut self) -> anyhow::Result<()> {
        if let Some(id) = rustix::process::Pid::from_raw(self.0.id() as i32) {
            _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        let asked = Instant::now();
        while self.0.try_wait()?.is_none() {
            if asked.elapsed() > Duration::from_secs(10) {
                self.0.kill()?;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

fn serve(
    arguments: &Emulate,
    emulation: &Emulation,
    orders: &mut Orders,
    context: &Context,
) -> anyhow::Result<End> {
    let started = Instant::now();
    let mut running = Running::start(&arguments.command)?;
    let cut = power_cut(arguments);
    let mut view = LiveView::default();
    loop {
        let elapsed = started.elapsed();
        orders.follow(emulation);
        view.tell(arguments, emulation, context, elapsed);
        let is_past =
            |time: Option<Nanos>| time.is_some_and(|time| elapsed >= Duration::from_nanos(time.0));
        if is_past(cut) {
            return Ok(End::PowerCut);
        }
        if let Some(running) = &mut running
            && let Some(status) = running.0.try_wait()?
        {
            return Ok(End::Command(status));
        }
        let is_time = is_past(arguments.time);
        if is_time || context.view.cancelled() {
            if let Some(running) = &mut running {
                running.end()?;
            }
            return Ok(if is_time { End::Time } else { End::Stopped });
        }
        if emulation.is_over() {
            return Err(Error::Unavailable {
                cause: "a directory was unmounted by somebody else".to_owned(),
                hint: "end the emulation with Ctrl-C rather than with umount".to_owned(),
            }
            .into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// When the power is cut: the moment that was named, or one that the seed draws.
fn power_cut(arguments: &Emulate) -> Option<Nanos> {
    let window = arguments.power_cut.as_ref()?;
    let seed = arguments.torn.unwrap_or(arguments.seed);
    Some(Nanos(stats::rng::Rng::new(seed).between(*window.start(), *window.end())))
}

/// What the user sees while devices are served.
#[derive(Default)]
struct LiveView {
    told: Option<Instant>,
    /// When completions were told last, after the start.
    completed: Duration,
    /// Requests of each device at the last look.
    requests: Vec<u64>,
}

impl LiveView {
    fn tell(
        &mut self,
        arguments: &Emulate,
        emulation: &Emulation,
        context: &Context,
        elapsed: Duration,
    ) {
        let since = self.told.map_or(TELL_EVERY, |at| at.elapsed());
        if since < TELL_EVERY {
            return;
        }
        self.told = Some(Instant::now());
        let status = emulation.status();
        self.tell_completions(emulation, context, elapsed);
        let before = self.requests.iter().copied().map(Some).chain(std::iter::repeat(None));
        let doing: Vec<String> = status
            .iter()
            .zip(before)
            .map(|(device, before)| orders::doing(device, before, since.as_secs_f64()))
            .collect();
        self.requests = status.iter().map(|device| device.requests).collect();
        let total = arguments.time.map(|time| time.0 as f64 / 1e9);
        let elapsed_s = elapsed.as_secs_f64();
        context.view.emit(Event::Progress {
            stage: STAGE.to_owned(),
            done: total.map_or(0.0, |total| (elapsed_s / total).min(1.0)),
            doing: doing.join("; "),
            eta_s: total.map(|total| (total - elapsed_s).max(0.0)),
        });
    }
}

impl LiveView {
    /// Tells what the devices answered since the last time.
    fn tell_completions(&mut self, emulation: &Emulation, context: &Context, elapsed: Duration) {
        let span = elapsed.saturating_sub(std::mem::replace(&mut self.completed, elapsed));
        for (device, classes) in emulation.status().into_iter().zip(emulation.completed()) {
            context.view.emit(Event::Completions {
                stage: STAGE.to_owned(),
                device: Some(device.name),
                at_s: elapsed.as_secs_f64(),
                span_s: span.as_secs_f64(),
                in_flight: device.depth as u64,
                classes,
            });
        }
    }
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Result {
    devices: Vec<Served>,
    warnings: Vec<Warning>,
    /// Share of the machine's processors that the emulation used itself.
    cpu_share: f64,
    /// The same for each request, ns.
    cpu_ns_per_request: f64,
}

/// Processor time of this process, s.
fn used_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

fn show(devices: Vec<Served>, elapsed_s: f64, context: &Context) -> anyhow::Result<()> {
    let warnings: Vec<Warning> = devices.iter().flat_map(Served::warnings).collect();
    for warning in &warnings {
        context.view.emit(Event::Warning(warning.clone()));
    }
    let (used_s, processors) =
        (used_s(), std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let cpu_share = used_s / (elapsed_s * processors as f64).max(f64::MIN_POSITIVE);
    if context.json {
        let requests: u64 = devices.iter().map(Served::requests).sum();
        let cpu_ns_per_request = used_s * 1e9 / requests.max(1) as f64;
        return output::json(&Result { devices, warnings, cpu_share, cpu_ns_per_request });
    }
    let head = ["DEVICE", "KIND", "REQUESTS", "MB", "MEAN us", "P50 us", "P99 us"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for device in &devices {
        for op in &device.ops {
            rows.push(vec![
                device.device.clone(),
                op.op.to_owned(),
                op.requests.to_string(),
                format!("{:.1}", op.bytes as f64 / 1e6),
                format!("{:.1}", op.service_us_mean),
                format!("{:.1}", op.service_us_p50),
                format!("{:.1}", op.service_us_p99),
            ]);
        }
    }
    let mut text = output::table(&rows);
    for device in &devices {
        text.push_str(&format!(
            "{}: answers left {:.0} us late or less (p99); the path takes {:.1} us\n",
            device.device, device.lateness_us_p99, device.path_us
        ));
        if let Some(lost) = device.lost {
            text.push_str(&format!(
                "{}: the power cut took {} bytes of {} files and {} names\n",
                device.device, lost.bytes, lost.files, lost.names
            ));
        }
    }
    text.push_str(&format!("it used {:.1} % of the processors itself\n", cpu_share * 100.0));
    output::print(&text)
}

/// Every file of a database that the kernel knows is open here.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
