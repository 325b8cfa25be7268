//! A zone put together of consecutive nodes of other contents. Nothing is copied before it is written: of a large zone
//! that changes in few places a second copy would cost more than the changes.

use crate::contents::{Contents, NodeEntry, RrsetEntry, Run};
use nonesuch_proto::Name;
use std::ops::Range;

/// Parts of contents that follow one another in canonical order and make a zone together.
#[derive(Clone, Debug)]
pub struct Splice<'a> {
    apex: Name,
    spans: Vec<Span<'a>>,
}

impl<'a> Splice<'a> {
    /// No nodes yet of the zone at `apex`.
    #[must_use]
    pub fn new(apex: &Name) -> Self {
        Self { apex: apex.clone(), spans: Vec::new() }
    }

    /// The whole of `contents`.
    #[must_use]
    pub fn of(contents: &'a Contents) -> Self {
        Self { apex: contents.apex().clone(), spans: vec![Span::of(contents)] }
    }

    /// The zone's apex.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        &self.apex
    }

    /// Adds the nodes `range` of `contents`, which come after those that are there in canonical order.
    pub fn push_nodes(&mut self, contents: &'a Contents, range: Range<usize>) {
        let Some(span) = Span::new(contents, range) else { return };
        let follows = |last: &&mut Span<'_>| {
            std::ptr::eq(last.contents, contents) && last.range.end == span.range.start
        };
        match self.spans.last_mut().filter(follows) {
            Some(last) => last.range.end = span.range.end,
            None => self.spans.push(span),
        }
    }

    /// The zone as contents of its own.
    #[must_use]
    pub fn to_contents(&self) -> Contents {
        let mut run = Run::default();
        run.reserve_for(&self.spans);
        self.spans.iter().for_each(|span| run.push_span(span));
        Contents::from_run(&self.apex, run)
    }

    /// The first node alone, which is the apex.
    pub(crate) fn head(&self) -> Contents {
        let mut run = Run::default();
        if let Some(first) = self.spans.first() {
            run.push_nodes(first.contents, first.range.start..first.range.start + 1);
        }
        Contents::from_run(&self.apex, run)
    }

    pub(crate) fn spans(&self) -> &[Span<'a>] {
        &self.spans
    }
}

/// Consecutive nodes of contents.
#[derive(Clone, Debug)]
pub(crate) struct Span<'a> {
    contents: &'a Contents,
    range: Range<usize>,
}

impl<'a> Span<'a> {
    /// `None` where there are no such nodes.
    pub(crate) fn new(contents: &'a Contents, range: Range<usize>) -> Option<Self> {
        (!range.is_empty() && range.end <= contents.nodes.len()).then_some(Self { contents, range })
    }

    /// All nodes.
    pub(crate) const fn of(contents: &'a Contents) -> Self {
        Self { contents, range: 0..contents.node_count() }
    }

    pub(crate) fn nodes(&self) -> &'a [NodeEntry] {
        &self.contents.nodes[self.range.clone()]
    }

    pub(crate) fn names(&self) -> &'a [u8] {
        let Contents { names, nodes, .. } = self.contents;
        let end = nodes.get(self.range.end).map_or(names.len(), |node| node.name as usize);
        &names[self.start().names as usize..end]
    }

    pub(crate) fn rrsets(&self) -> &'a [RrsetEntry] {
        &self.contents.rrsets[self.start().rrsets as usize..self.rrset_end()]
    }

    pub(crate) fn rdata(&self) -> &'a [u8] {
        let Contents { rdata, rrsets, .. } = self.contents;
        let end = rrsets.get(self.rrset_end()).map_or(rdata.len(), |rrset| rrset.start as usize);
        &rdata[self.start().rdata as usize..end]
    }

    /// Where the first node begins in the arenas: the first of all at 0, whatever its entry says.
    pub(crate) fn start(&self) -> Start {
        let Contents { rrsets, nodes, rdata, .. } = self.contents;
        let Some(node) = nodes.get(self.range.start).filter(|_| self.range.start > 0) else {
            return Start::default();
        };
        let rdata = rrsets.get(node.first_rrset as usize).map_or(rdata.len() as u64, |rrset| rrset.start);
        Start { names: node.name, rrsets: node.first_rrset, rdata }
    }

    fn rrset_end(&self) -> usize {
        let Contents { rrsets, nodes, .. } = self.contents;
        nodes.get(self.range.end).map_or(rrsets.len(), |node| node.first_rrset as usize)
    }
}

/// Offsets in the arenas of contents.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start {
    pub(crate) names: u32,
    pub(crate) rrsets: u32,
    pub(crate) rdata: u64,
}
