//! Properties over random worlds.
