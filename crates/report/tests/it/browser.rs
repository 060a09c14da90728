//! A headless Chromium over the DevTools protocol, as far as these tests need it.
//!
//! The protocol runs over a pipe (`--remote-debugging-pipe`: JSON messages that end in a zero byte,
//! read from descriptor 3 and written to descriptor 4), so there is no port and no web socket. A
//! shell moves our two pipes to those descriptors and then becomes the browser.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Long, since the machine may be busy; nothing waits for it when all is well.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running browser; ends with this value.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    last_id: u64,
    events: Vec<Value>,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Starts the browser, or says why there is none to start.
    pub fn launch() -> Result<Self, String> {
        let program = find()?;
        let profile = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<&0 4>&1 1>/dev/null 2>&1"#, "sh"])
            .arg(&program)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args(["--disable-quic", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let to = child.stdin.take().expect("stdin is piped");
        let output = child.stdout.take().expect("stdout is piped");
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                let value = serde_json::from_slice(&message).expect("the browser speaks JSON");
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let mut browser =
            Self { child, to, from, last_id: 0, events: Vec::new(), _profile: profile };
        match browser.call(None, "Browser.getVersion", &json!({})) {
            Ok(_) => Ok(browser),
            Err(error) => Err(format!("{} does not answer: {error}", program.display())),
        }
    }

    /// Opens a new tab, `width` pixels wide, on an empty page.
    pub fn tab(&mut self, width: u32) -> Tab<'_> {
        let target = self.call(None, "Target.createTarget", &json!({ "url": "about:blank" }));
        let target = target.expect("a tab opens")["targetId"].clone();
        let attach = json!({ "targetId": target, "flatten": true });
        let session = self.call(None, "Target.attachToTarget", &attach).expect("the tab attaches");
        let session = session["sessionId"].as_str().expect("a session has an id").to_owned();
        self.events.clear();
        let mut tab = Tab { browser: self, session, target };
        for domain in ["Page", "Runtime", "Network", "Log"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        tab.width(width);
        tab
    }

    fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Result<Value, String> {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).map_err(|error| error.to_string())?;
        let reply = self.wait(|message| message["id"] == id)?;
        match reply.get("error") {
            Some(error) => Err(format!("{method}: {error}")),
            None => Ok(reply["result"].clone()),
        }
    }

    /// The next message that is wanted; others are kept as events.
    fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.from.recv_timeout(left).map_err(|error| error.to_string())?;
            if wanted(&message) {
                return Ok(message);
            }
            self.events.push(message);
        }
    }
}

/// The browser to use, or why there is none.
fn find() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("WEARMARK_CHROMIUM") {
        return Ok(path.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            "no chromium, chromium-browser or google-chrome in PATH (WEARMARK_CHROMIUM names \
             another)"
                .to_owned()
        })
}

/// One tab.
pub struct Tab<'a> {
    browser: &'a mut Browser,
    session: String,
    target: Value,
}

impl Tab<'_> {
    /// Closes the tab.
    pub fn close(self) {
        let target = json!({ "targetId": self.target });
        self.browser.call(None, "Target.closeTarget", &target).expect("a tab closes");
    }

    /// Sends one command and returns its result.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.browser
            .call(Some(&self.session), method, params)
            .unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Loads a file and waits until it is loaded.
    pub fn open(&mut self, file: &Path) {
        self.visit(&format!("file://{}", file.display()));
    }

    /// Loads an address and waits until it is loaded.
    pub fn visit(&mut self, url: &str) {
        self.browser.events.clear();
        let reply = self.call("Page.navigate", &json!({ "url": url }));
        assert_eq!(reply.get("errorText"), None, "{url}");
        self.wait_for("Page.loadEventFired");
    }

    /// Loads the page again.
    pub fn reload(&mut self) {
        self.browser.events.clear();
        self.call("Page.reload", &json!({}));
        self.wait_for("Page.loadEventFired");
    }

    fn wait_for(&mut self, method: &str) {
        if !self.browser.events.iter().any(|event| event["method"] == method) {
            self.browser.wait(|message| message["method"] == method).expect(method);
        }
    }

    /// Sets the width of the window in pixels.
    pub fn width(&mut self, width: u32) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        self.settle();
    }

    /// Makes the page believe in a medium (`screen`, `print`) and a preferred colour scheme.
    pub fn media(&mut self, medium: &str, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "media": medium, "features": features }));
    }

    /// The value of an expression.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let reply = self.call("Runtime.evaluate", &params);
        assert_eq!(reply.get("exceptionDetails"), None, "{expression}");
        reply["result"]["value"].clone()
    }

    /// Waits for two frames: layout observers have run then, and the console has spoken.
    pub fn settle(&mut self) {
        self.eval(
            "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))",
        );
    }

    /// Whether an expression is true.
    pub fn holds(&mut self, expression: &str) -> bool {
        self.eval(expression) == true
    }

    /// An expression's text.
    pub fn text(&mut self, expression: &str) -> String {
        self.eval(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Presses and releases a key, by its DOM name.
    pub fn key(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && key == "Enter" {
                event["text"] = "\r".into();
            }
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Scrolls the first element that matches into view and returns the point at the given shares
    /// of its width and height.
    pub fn point_in(&mut self, selector: &str, across: f64, down: f64) -> (f64, f64) {
        let box_of = format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'center', \
             behavior: 'instant'}}); const b = e.getBoundingClientRect(); return [b.x, b.y, \
             b.width, b.height]; }})()",
            json!(selector)
        );
        let reply = self.eval(&box_of);
        let at = |index: usize| reply[index].as_f64().expect("a box has four numbers");
        (at(0) + across * at(2), at(1) + down * at(3))
    }

    /// Sends one mouse event: `mouseMoved`, `mousePressed` or `mouseReleased`.
    pub fn mouse(&mut self, kind: &str, (x, y): (f64, f64), clicks: u32) {
        let held = kind == "mousePressed" || clicks > 0;
        let button = if held { "left" } else { "none" };
        let buttons = u32::from(held && kind != "mouseReleased");
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": buttons,
            "clickCount": clicks });
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// Moves the mouse into an element.
    pub fn hover(&mut self, selector: &str, across: f64, down: f64) {
        let point = self.point_in(selector, across, down);
        self.mouse("mouseMoved", point, 0);
    }

    /// Clicks the middle of an element.
    pub fn click(&mut self, selector: &str) {
        let point = self.point_in(selector, 0.5, 0.5);
        self.mouse("mousePressed", point, 1);
        self.mouse("mouseReleased", point, 1);
    }

    /// Everything that the console complains about, one line each; empty when all is well.
    pub fn complaints(&mut self) -> String {
        self.settle();
        let mut out = String::new();
        for event in &self.browser.events {
            let params = &event["params"];
            let bad = match event["method"].as_str() {
                Some("Runtime.exceptionThrown") => true,
                Some("Runtime.consoleAPICalled") => {
                    ["error", "warning", "assert"].iter().any(|kind| params["type"] == *kind)
                }
                Some("Log.entryAdded") => {
                    ["error", "warning"].iter().any(|level| params["entry"]["level"] == *level)
                }
                _ => false,
            };
            // One fault may repeat a thousand times; the first few tell it.
            if bad && out.lines().count() < 5 {
                writeln!(out, "{params}").expect("a string takes all");
            }
        }
        out
    }

    /// Addresses of all requests since the page was opened.
    pub fn requests(&mut self) -> Vec<String> {
        self.settle();
        let sent = |event: &&Value| event["method"] == "Network.requestWillBeSent";
        let url = |event: &Value| event["params"]["request"]["url"].to_string();
        self.browser.events.iter().filter(sent).map(url).collect()
    }

    /// Saves a picture of the whole page where a developer finds it, if `WEARMARK_PICTURES` is set.
    pub fn screenshot(&mut self, name: &str) {
        if std::env::var_os("WEARMARK_PICTURES").is_none() {
            return;
        }
        let params = json!({ "captureBeyondViewport": true });
        let reply = self.call("Page.captureScreenshot", &params);
        let text = reply["data"].as_str().expect("a picture is text");
        std::fs::write(picture(&format!("{name}.png")), base64(text)).expect("a picture is saved");
    }

    /// Prints the page to a PDF file's bytes; kept like a picture.
    pub fn pdf(&mut self, name: &str) -> Vec<u8> {
        let params = json!({ "preferCSSPageSize": true, "paperWidth": 8.27, "paperHeight": 11.69 });
        let reply = self.call("Page.printToPDF", &params);
        let bytes = base64(reply["data"].as_str().expect("a document is text"));
        if std::env::var_os("WEARMARK_PICTURES").is_some() {
            std::fs::write(picture(&format!("{name}.pdf")), &bytes).expect("a document is saved");
        }
        bytes
    }
}

/// Where pictures are kept: `target/tmp/report`.
fn picture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).expect("the target folder is writable");
    folder.join(name)
}

/// Bytes behind a base64 text.
fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().filter_map(digit).collect();
    let group = |group: &[u8]| {
        let bits = group.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit));
        let bits = bits << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}
