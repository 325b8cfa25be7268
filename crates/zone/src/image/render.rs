//! Rendering of the records of templates. The compression pointers are correct in the base case.

use super::template::{MAX_POINTER_OFFSET, POINTER, Patch, QUESTION_POINTER, push_record_fields};
use nonesuch_proto::message::HEADER;
use nonesuch_proto::{NameRef, Rtype, rdata};

/// Maximum number of suffixes of a template to which later names can point. Without a limit,
/// rendering a large RRset would take quadratic time.
const MAX_SUFFIXES: usize = 64;
/// Maximum octets of a question name (RFC 1035 §2.3.4).
const MAX_QUESTION_OCTETS: usize = 255;

/// A name to which later names can point.
struct Suffix {
    /// The name in lower case.
    wire: Vec<u8>,
    /// Compression pointer to the name in the base case.
    pointer: u16,
    /// Whether the name is in the current template.
    is_in_template: bool,
}

/// The records of one template.
#[derive(Default)]
pub(super) struct Rendered {
    pub(super) records: Vec<u8>,
    pub(super) patches: Vec<Patch>,
    /// Offset of the last patch; 0 before the first patch.
    last_patch: usize,
}

/// Renders the templates of one node, one after the other.
pub(super) struct Renderer {
    /// Octets of the question name in the base case.
    base_octets: usize,
    /// Suffixes: first those of the question name and of previous templates, then those of the
    /// current template.
    suffixes: Vec<Suffix>,
    /// Number of suffixes of the question name and of previous templates.
    shared_count: usize,
}

/// Returns the octets of the records of an RRset as rendered, with compressed names.
pub(crate) fn rendered_octets<'r>(
    owner: NameRef<'_>,
    apex: NameRef<'_>,
    rtype: Rtype,
    rdatas: impl Iterator<Item = &'r [u8]>,
) -> usize {
    let (mut renderer, mut rendered) = (Renderer::new(owner, apex, false), Rendered::default());
    rdatas.for_each(|rdata| renderer.push_record(rtype, 0, rdata, &mut rendered));
    rendered.records.len()
}

impl Renderer {
    /// Creates a renderer for templates with the base question `question` in the zone `apex`. If
    /// `all_suffixes` is set, names may point to every suffix of the question name; otherwise only
    /// to the apex. `all_suffixes` is correct only for templates that are used with question names
    /// at or below `question`.
    pub(super) fn new(question: NameRef<'_>, apex: NameRef<'_>, all_suffixes: bool) -> Self {
        let mut renderer = Self { base_octets: question.len(), suffixes: Vec::new(), shared_count: 0 };
        let mut name = question;
        while name.len() >= apex.len() && !name.is_root() {
            if all_suffixes || name.len() == apex.len() {
                let pointer = QUESTION_POINTER + (question.len() - name.len()) as u16;
                let wire = name.wire().to_ascii_lowercase();
                renderer.suffixes.push(Suffix { wire, pointer, is_in_template: false });
            }
            let Some(parent) = name.parent() else { break };
            name = parent;
        }
        renderer.shared_count = renderer.suffixes.len();
        renderer
    }

    /// Begins a template in `out`. Its names cannot point to names in the previous template.
    pub(super) fn begin(&mut self, out: &mut Rendered) {
        out.records.clear();
        out.patches.clear();
        out.last_patch = 0;
        self.suffixes.retain(|suffix| !suffix.is_in_template);
        self.shared_count = self.suffixes.len();
    }

    /// Lets all following templates point to names in the last template. This template must always
    /// directly follow the question, like the NS RRset of a referral, which precedes its glue.
    pub(super) fn keep_suffixes(&mut self) {
        self.suffixes.iter_mut().for_each(|suffix| suffix.is_in_template = false);
    }

    /// Appends a record whose owner is the question name.
    pub(super) fn push_record(&mut self, rtype: Rtype, ttl: u32, rdata: &[u8], out: &mut Rendered) {
        out.records.extend_from_slice(&QUESTION_POINTER.to_be_bytes());
        self.push_body(rtype, ttl, rdata, out);
    }

    /// Appends a record whose owner is written in full or with a pointer.
    pub(super) fn push_record_of(
        &mut self,
        owner: NameRef<'_>,
        rtype: Rtype,
        ttl: u32,
        rdata: &[u8],
        out: &mut Rendered,
    ) {
        self.push_name(owner, out);
        self.push_body(rtype, ttl, rdata, out);
    }

    fn push_body(&mut self, rtype: Rtype, ttl: u32, octets: &[u8], out: &mut Rendered) {
        push_record_fields(rtype, ttl, 0, &mut out.records);
        let start = out.records.len();
        let mut copied = 0;
        // Only names in the types of RFC 1035 may be compressed (RFC 3597 §4).
        for name in rdata::names(rtype, octets).filter(|name| name.compress) {
            out.records.extend_from_slice(&octets[copied..name.range.start]);
            copied = name.range.end;
            self.push_name(NameRef::from_wire_unchecked(&octets[name.range]), out);
        }
        out.records.extend_from_slice(&octets[copied..]);
        let length = (out.records.len() - start) as u16;
        out.records[start - 2..start].copy_from_slice(&length.to_be_bytes());
    }

    /// Appends a name, compressed with the suffixes that existed before this call.
    fn push_name(&mut self, name: NameRef<'_>, out: &mut Rendered) {
        let known = self.suffixes.len();
        let mut rest = name;
        while !rest.is_root() {
            let at = out.records.len();
            let is_in_range = at - out.last_patch < Patch::LIMIT;
            if let Some(suffix) = self.find(rest, known).filter(|_| is_in_range) {
                out.patches.push(if suffix.is_in_template {
                    Patch::to_template(at)
                } else {
                    Patch::to_question(at)
                });
                out.last_patch = at;
                out.records.extend_from_slice(&suffix.pointer.to_be_bytes());
                return;
            }
            self.add_suffix(rest, at);
            let label = 1 + usize::from(rest.wire()[0]);
            out.records.extend_from_slice(&rest.wire()[..label]);
            rest = rest.parent().unwrap_or(NameRef::ROOT);
        }
        out.records.push(0);
    }

    /// Finds a name among the first `known` suffixes.
    fn find(&self, name: NameRef<'_>, known: usize) -> Option<&Suffix> {
        self.suffixes[..known].iter().find(|suffix| suffix.wire.eq_ignore_ascii_case(name.wire()))
    }

    fn add_suffix(&mut self, name: NameRef<'_>, at: usize) {
        // If the template directly follows the question, the pointer reaches its target for any
        // question name.
        let is_in_range = HEADER + MAX_QUESTION_OCTETS + 4 + at <= MAX_POINTER_OFFSET;
        if is_in_range && self.suffixes.len() - self.shared_count < MAX_SUFFIXES {
            let offset = HEADER + self.base_octets + 4 + at;
            let wire = name.wire().to_ascii_lowercase();
            self.suffixes.push(Suffix { wire, pointer: POINTER | offset as u16, is_in_template: true });
        }
    }
}
