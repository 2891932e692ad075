//! The table of `docs/reliability.md`: every test that it names is there, and a row without a test says so.

use std::collections::BTreeSet;

use crate::read;

/// How many ways of failing the table has.
const ROWS: usize = 94;

/// The cells of the rows that begin with a number.
fn rows() -> Vec<Vec<String>> {
    let page = read("docs/reliability.md");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let numbered = |row: &Vec<String>| row[0].parse::<usize>().is_ok();
    page.lines().filter(|line| line.starts_with('|')).map(cells).filter(numbered).collect()
}

/// `file: name`, as the last column has it.
fn tests(cell: &str) -> Vec<(String, String)> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted
        .filter_map(|text| text.split_once(".rs: "))
        .map(|(file, name)| (format!("crates/{file}.rs"), name.to_owned()))
        .collect()
}

/// A test is a function, or begins with this text where a list of tests names it.
fn is_there(source: &str, name: &str) -> bool {
    source.contains(&format!("fn {name}(")) || source.contains(&format!("\"{name}"))
}

#[test]
fn every_row_names_a_test_or_says_that_there_is_none() {
    let rows = rows();
    let numbers: Vec<usize> = rows.iter().filter_map(|row| row[0].parse().ok()).collect();
    assert_eq!(numbers, (1..=ROWS).collect::<Vec<_>>());
    for row in &rows {
        let shown = row.last().map(|cell| tests(cell)).unwrap_or_default();
        let admitted = row.iter().any(|cell| cell == "not shown");
        assert!(shown.is_empty() == admitted, "row {}: a test, or `not shown`", row[0]);
    }
}

#[test]
fn every_test_of_the_table_is_there() {
    let named: BTreeSet<(String, String)> =
        rows().iter().filter_map(|row| row.last().cloned()).flat_map(|cell| tests(&cell)).collect();
    assert!(named.len() > ROWS / 2);
    let missing: Vec<_> = named.iter().filter(|(file, name)| !is_there(&read(file), name)).collect();
    assert!(missing.is_empty(), "docs/reliability.md names tests that are not there: {missing:#?}");
}
