//! Tests of the screen without a terminal: states and keys are input, text is output.

mod keys;
mod log;
mod pieces;
mod screens;
mod sizes;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{App, Paint};
use crate::api::model::Version;
use crate::api::{Look, State};
use crate::stats::fixture;
use crate::stats::{Snapshot, SwitchView};

pub const PLAIN: Paint = Paint { colour: false, unicode: true };

/// The state that the API would return for `switch_view`.
pub fn state(switch_view: &SwitchView, snapshot: &Snapshot) -> State {
    let version = Version {
        version: "1.2.3".to_owned(),
        api: "v1".to_owned(),
        pid: 4711,
        began_unix_ns: 1,
        config_source: "/etc/holdfast/rack.yaml".to_owned(),
        config_hash: "0123456789abcdef".to_owned(),
        writes: false,
    };
    let mut state = Look { switch_view, snapshot }.state(version);
    state.ports.iter_mut().for_each(|port| port.device = "ring".to_owned());
    state
}

/// The states before and after a busy second.
pub fn second() -> (State, State) {
    let (switch_view, before, after) = fixture::second();
    (state(&switch_view, &before), state(&switch_view, &after))
}

/// An app that has seen a busy second.
pub fn busy(paint: Paint) -> App {
    let (before, after) = second();
    let mut app = App::new(paint, Duration::from_secs(1));
    app.look(before, &[]);
    app.look(after, &[]);
    app
}

/// The screen of `app` as text, one line per row, without trailing spaces.
pub fn text(app: &App, width: u16, height: u16) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    app.draw(buffer.area, &mut buffer);
    let rows = buffer.content().chunks(usize::from(width.max(1)));
    let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n")
}
