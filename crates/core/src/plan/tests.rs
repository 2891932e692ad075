//! The planner as a whole: tables of cases, and properties over random zones.

mod basics;
mod brakes;
mod challenges;
mod following;
mod found;
mod growth;
mod model;
mod ordering;
mod owners;
mod properties;
