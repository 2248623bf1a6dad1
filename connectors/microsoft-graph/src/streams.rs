//! The collections that can be followed.

use weir_sdk::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Users,
    Groups,
    Messages,
    Files,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Users, Kind::Groups, Kind::Messages, Kind::Files];

    pub(crate) fn of(stream: &str) -> Result<Kind, Fault> {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == stream)
            .ok_or_else(|| Fault::no_stream(stream))
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Users => "users",
            Kind::Groups => "groups",
            Kind::Messages => "messages",
            Kind::Files => "files",
        }
    }

    pub(crate) fn path(self, user: Option<&str>, folder: Option<&str>) -> String {
        let owner = user.map_or_else(
            || "/me".to_owned(),
            |user| format!("/users/{}", url::segment(user)),
        );
        match self {
            Kind::Users => "/users/delta".to_owned(),
            Kind::Groups => "/groups/delta".to_owned(),
            Kind::Messages => {
                let folder = url::segment(folder.unwrap_or("inbox"));
                format!("{owner}/mailFolders/{folder}/messages/delta")
            }
            Kind::Files => format!("{owner}/drive/root/delta"),
        }
    }

    /// Where an object's moment stands; directory objects have none.
    pub(crate) fn stamp(self) -> &'static str {
        "/lastModifiedDateTime"
    }

    pub(crate) fn describe(self) -> Stream {
        let stream = Stream::new(self.name())
            .key("/id")
            .cursor(CursorKind::Opaque)
            .backfill(false)
            .volatile("/@odata.etag");
        match self {
            Kind::Users => stream.title("Users"),
            Kind::Groups => stream.title("Groups"),
            Kind::Messages => stream.title("Mail messages").granularity(1000),
            // Download addresses are made anew for every answer.
            Kind::Files => stream
                .title("Files")
                .granularity(1000)
                .volatile("/@microsoft.graph.downloadUrl"),
        }
    }
}
