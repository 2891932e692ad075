//! Writes replies: the question as it was asked, then sets of records copied in whole, then EDNS.
//!
//! A reply never grows beyond its limit: what does not fit is left out and the reply says so (TC).

use super::rrset::Rrset;
use super::wire::{COOKIE, DnsRequest, Edns, HEADER};
use super::zone::Glue;

/// The sections after the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Answer,
    Authority,
    Additional,
}

/// A reply being written.
pub(crate) struct Reply<'o> {
    out: &'o mut Vec<u8>,
    limit: usize,
    question_end: usize,
    counts: [u16; 3],
    authoritative: bool,
    truncated: bool,
}

impl<'o> Reply<'o> {
    /// Begins a reply to a request, of at most so many bytes before EDNS.
    pub(crate) fn begin(out: &'o mut Vec<u8>, request: &DnsRequest<'_>, limit: usize) -> Reply<'o> {
        let question_end = request.question_end();
        out.clear();
        out.extend_from_slice(&request.packet[..question_end]);
        Reply { out, limit, question_end, counts: [0; 3], authoritative: false, truncated: false }
    }

    /// How long the reply is so far.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether something did not fit.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// How many records a section has.
    pub(crate) fn count(&self, section: Section) -> u16 {
        self.counts[section as usize]
    }

    /// Says whether the answer comes from a zone of ours.
    pub(crate) fn set_authoritative(&mut self, authoritative: bool) {
        self.authoritative = authoritative;
    }

    /// Adds a set whose owner stands at an offset of the message, or cuts the reply.
    pub(crate) fn push(&mut self, section: Section, set: Rrset<'_>, owner: usize) {
        if self.truncated {
            return;
        }
        if self.out.len() + set.wire.len() > self.limit {
            return self.truncate();
        }
        set.append_to(self.out, pointer(owner));
        self.counts[section as usize] += set.count;
    }

    /// Adds addresses of name servers. Those that nobody could find otherwise are worth a truncation, others are not.
    pub(crate) fn push_glue(&mut self, glue: &[Glue]) {
        for one in glue {
            if self.truncated || self.out.len() + one.wire.len() > self.limit {
                return if one.required {
                    self.truncate()
                };
            }
            self.out.extend_from_slice(&one.wire);
            self.counts[Section::Additional as usize] += 1;
        }
    }

    /// Takes all records out and says that there is more.
    pub(crate) fn truncate(&mut self) {
        self.out.truncate(self.question_end);
        self.counts = [0; 3];
        self.truncated = true;
    }

    /// Writes EDNS and the header.
    pub(crate) fn finish(mut self, code: u16, edns: Option<Extra>) {
        if let Some(edns) = edns {
            edns.append_to(self.out, code);
            self.counts[Section::Additional as usize] += 1;
        }
        let flags = u8::from(self.authoritative) << 2 | u8::from(self.truncated) << 1;
        let [_, _, first, second, ..] = &mut self.out[..] else { return };
        *first = 0x80 | *first & 0x79 | flags;
        *second = code as u8 & 0x0f;
        for (at, count) in [4, 6, 8, 10].into_iter().zip([1].into_iter().chain(self.counts)) {
            self.out[at..at + 2].copy_from_slice(&count.to_be_bytes());
        }
    }
}

/// A reply of a header alone, for packets that could not be read. The packet has a header.
pub(crate) fn bare(out: &mut Vec<u8>, packet: &[u8], code: u16) {
    out.clear();
    out.extend_from_slice(&packet[..4]);
    out[2] = 0x80 | out[2] & 0x79;
    out[3] = code as u8 & 0x0f;
    out.resize(HEADER, 0);
}

/// Cuts a finished reply down to header, question and EDNS, and sets TC. `question_end` is where the question ends.
pub(crate) fn cut(out: &mut Vec<u8>, question_end: usize, edns: Option<Extra>) {
    out.truncate(question_end);
    let code = u16::from(out.get(3).copied().unwrap_or_default() & 0x0f);
    if let Some(flags) = out.get_mut(2) {
        *flags |= 0x02;
    }
    out[6..HEADER].fill(0);
    if let Some(edns) = edns {
        out[HEADER - 1] = 1;
        edns.append_to(out, code);
    }
}

/// What the reply says about EDNS.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extra {
    pub(crate) payload: u16,
    pub(crate) dnssec_ok: bool,
    /// The client's cookie and ours.
    pub(crate) cookie: Option<([u8; 8], [u8; 16])>,
}

impl Extra {
    /// The reply to what a client said.
    pub(crate) fn to(edns: &Edns, payload: u16) -> Extra {
        Extra { payload, dnssec_ok: edns.dnssec_ok, cookie: None }
    }

    /// How many bytes it takes.
    pub(crate) fn len(&self) -> usize {
        11 + if self.cookie.is_some() { 28 } else { 0 }
    }

    fn append_to(&self, out: &mut Vec<u8>, code: u16) {
        out.extend_from_slice(b"\0\0\x29");
        out.extend_from_slice(&self.payload.to_be_bytes());
        out.extend_from_slice(&[(code >> 4) as u8, 0, u8::from(self.dnssec_ok) << 7, 0]);
        let Some((client, server)) = self.cookie else { return out.extend_from_slice(&[0, 0]) };
        out.extend_from_slice(&28u16.to_be_bytes());
        out.extend_from_slice(&COOKIE.to_be_bytes());
        out.extend_from_slice(&24u16.to_be_bytes());
        out.extend_from_slice(&client);
        out.extend_from_slice(&server);
    }
}

/// A compression pointer. Owners stand in the question or in a short chain of aliases, so far below 16384.
fn pointer(offset: usize) -> u16 {
    0xc000 | (offset as u16 & 0x3fff)
}
