//! A world as files: one for the platform, one for each team.

use crate::world::{Document, Style, World};

/// A file of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldFile {
    /// Its name, without folders.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// The files of a world, one after the other.
pub fn files(world: &World, style: Style) -> impl Iterator<Item = WorldFile> + '_ {
    let platform = std::iter::once_with(move || file("platform", world.platform(style), style));
    let teams = (0..world.size().team_namespaces()).map(move |team| {
        let name = crate::layout::team_name(team);
        file(&name, world.team(team, style), style)
    });
    platform.chain(teams)
}

fn file(name: &str, documents: impl Iterator<Item = Document>, style: Style) -> WorldFile {
    let mut text = String::new();
    for document in documents {
        if !text.is_empty() {
            text.push_str(style.separator());
        }
        text.push_str(&document.text);
    }
    WorldFile { name: format!("{name}.{}", style.extension()), text }
}
