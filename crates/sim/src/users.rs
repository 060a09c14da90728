//! Users that wait for the device: what the closed loops have in common.

use model::{Device, Queued};
use trace::Request;
use units::Nanos;

/// Everybody who waits for a device.
pub(crate) trait Users {
    /// When the next request is issued; `None` where nobody has one before another completes.
    fn next_issue(&mut self) -> Option<u64>;

    /// That request, with a ticket that names it until it completes.
    fn issue(&mut self) -> (u64, Nanos, Request);

    /// The request `ticket` completed.
    fn completed(&mut self, ticket: u64, at: u64);
}

/// Serves `users` until nobody has a request.
pub(crate) fn serve(device: &mut dyn Device, users: &mut impl Users) {
    if let Some(queued) = device.queued() {
        return serve_queued(queued, users);
    }
    while users.next_issue().is_some() {
        let (ticket, now, request) = users.issue();
        let completion = device.submit(now, &request).0;
        users.completed(ticket, completion);
    }
}

/// Arrivals and completions in the order of their times, completions first.
fn serve_queued(device: &mut dyn Queued, users: &mut impl Users) {
    let mut outstanding = 0u64;
    loop {
        let next_issue = users.next_issue();
        let until = Nanos(next_issue.unwrap_or(u64::MAX));
        if let Some((at, ticket)) = device.next_completion(until) {
            outstanding -= 1;
            users.completed(ticket, at.0);
        } else if next_issue.is_some() {
            let (ticket, now, request) = users.issue();
            outstanding += 1;
            device.arrive(now, ticket, &request);
        } else {
            assert!(outstanding == 0, "{outstanding} requests were issued and never completed");
            return;
        }
    }
}
