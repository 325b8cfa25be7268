//! Answers a query from a zone image (RFC 1034 §4.3.2, RFC 4035 §3.1, RFC 5155 §7.2, RFC 6672 §3.2,
//! RFC 8482, RFC 8906).

mod denial;
mod referral;

use crate::online::OnlineContext;
use crate::response::{Response, Section};
use nonesuch_dnssec::denial::prove::{DenialTarget, Proof};
use nonesuch_net::Transport;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, MAX_NAME, Name, NameRef, Rtype, edns};
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::limits::ResponseCategory;
use nonesuch_server::query::Query;
use nonesuch_server::trailer::Trailer;
use nonesuch_zone::Image;
use nonesuch_zone::image::{
    ImageNode, Lookup, NodeKind, OwnerForm, QUESTION_POINTER, Template, push_record_fields,
};

/// Maximum number of aliases (CNAME and DNAME records) that one response follows. The target of the
/// last alias is also looked up.
const MAX_ALIASES: usize = 17;
/// Offset of the RDATA in a record whose owner is a compression pointer: after pointer (2 octets),
/// type (2), class (2), TTL (4) and length (2).
const RDATA_OFFSET: usize = 12;

/// A query and everything else, apart from the zone, that its response depends on.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub(crate) query: &'a Query<'a>,
    /// The query name in lower case.
    pub(crate) name: NameRef<'a>,
    pub(crate) transport: Transport,
    /// The OPT and TSIG records of the response.
    pub(crate) trailer: &'a Trailer<'a>,
}

impl<'a> Request<'a> {
    /// Creates the request for a `query` received over `transport`. `trailer` describes the OPT and
    /// TSIG records of the response. The query name in lower case is stored in `name_buffer`.
    // Every query calls this function. Inlined, it does not copy values that the caller already
    // has.
    #[inline(always)]
    pub fn new(
        query: &'a Query<'a>,
        name_buffer: &'a mut [u8; MAX_NAME],
        transport: Transport,
        trailer: &'a Trailer<'a>,
    ) -> Self {
        Self { query, name: query.lower_name(name_buffer), transport, trailer }
    }
}

impl Request<'_> {
    /// Appends the OPT record to a response that is not built with [`Response`], if the query has
    /// one.
    pub(crate) fn push_opt_alone(&self, out: &mut Vec<u8>) {
        let Some(opt) = &self.query.opt else { return };
        let trailer = Trailer { reply: self.trailer.reply.without_padding(), ..*self.trailer };
        let limit = trailer.max_datagram_octets(self.query);
        trailer.push_opt(Rcode::NOERROR, opt.flags & edns::DO, None, limit, out);
    }
}

/// Properties of a response that rate limiting and online signing need.
#[derive(Clone, Copy, Debug)]
pub struct AnswerInfo<'i> {
    /// The category of the response for rate limiting.
    pub category: ResponseCategory,
    /// The name in the zone that the response comes from, under which rate limiting counts it: the
    /// owner of the answer in the zone, the zone cut of a referral, or the apex for NXDOMAIN.
    pub source_name: NameRef<'i>,
    /// Whether the response is deferred, because it lacks records that are generated online.
    pub is_deferred: bool,
}

/// Answers a query for a name in the zone of `image`. Clears `out` and writes the response to it.
/// If the zone is signed online, the response lacks the records that are generated online.
#[inline]
pub fn answer<'i>(image: &'i Image, request: &Request<'_>, out: &mut Vec<u8>) -> AnswerInfo<'i> {
    answer_with_online(image, None, request, out)
}

/// Writes a response without records, with a response code and an extended error. `truncate` sets
/// TC, which asks the client to repeat the query over TCP.
pub(crate) fn error_response(
    request: &Request<'_>,
    rcode: Rcode,
    error: Option<ExtendedError>,
    truncate: bool,
    out: &mut Vec<u8>,
) {
    let mut response = Response::begin(request.query, request.transport, request.trailer, out);
    response.rcode = rcode;
    if let Some(error) = error {
        response.set_extended_error(error);
    }
    response.finish(request.query, truncate);
}

/// Response code and extended error for a query that no zone can answer.
pub(crate) struct ErrorResponse {
    pub(crate) rcode: Rcode,
    pub(crate) error: Option<ExtendedError>,
}

/// Returns the error response for a query that no zone can answer: an unknown EDNS version, a query
/// type that is not data, or a class other than IN. Returns `None` for all other queries.
pub(crate) fn reject_unanswerable(query: &Query<'_>) -> Option<ErrorResponse> {
    let rejection = |rcode, error| Some(ErrorResponse { rcode, error });
    if query.opt.is_some_and(|opt| opt.version != 0) {
        return rejection(Rcode::BADVERS, None);
    }
    match query.qtype {
        Rtype::MAILA | Rtype::MAILB => rejection(Rcode::NOTIMP, None),
        Rtype::OPT | Rtype::TSIG | Rtype::TKEY => rejection(Rcode::FORMERR, None),
        // RFC 9824 §3.5: NXNAME is not a valid query type.
        Rtype::NXNAME => rejection(Rcode::FORMERR, Some(ExtendedError::INVALID_QUERY_TYPE)),
        _ if query.class != Class::IN => rejection(Rcode::REFUSED, Some(ExtendedError::NOT_AUTHORITATIVE)),
        _ => None,
    }
}

/// Answers a query as [`answer`] does, and adds the records that `online` generates. If a record is
/// not available yet, `online` queues it, and the response is deferred. With `None`, all records
/// come from the image.
pub(crate) fn answer_with_online<'i>(
    image: &'i Image,
    mut online: Option<&mut OnlineContext<'i, '_>>,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> AnswerInfo<'i> {
    let query = request.query;
    let mut response = Response::begin(query, request.transport, request.trailer, out);
    response.authoritative = true;
    let accepts_compact_nxdomain = query.opt.is_some_and(|opt| opt.flags & edns::CO != 0);
    if accepts_compact_nxdomain && online.as_ref().is_some_and(|online| online.is_compact()) {
        response.set_compact_ok();
    }
    let mut answerer = AnswerBuilder {
        image,
        qtype: query.qtype,
        response: &mut response,
        online: online.as_deref_mut(),
        accepts_compact_nxdomain,
        category: ResponseCategory::Positive,
        source_name: image.apex(),
        alias_count: 0,
        alias_proofs: Vec::new(),
        added_dnames: Vec::new(),
    };
    let truncate = answerer.answer_with_aliases(request.name);
    let (category, source_name) = (answerer.category, answerer.source_name);
    response.finish(query, truncate);
    AnswerInfo { category, source_name, is_deferred: online.is_some_and(|online| online.is_deferred) }
}

struct AnswerBuilder<'i, 'w, 'r, 'o> {
    image: &'i Image,
    qtype: Rtype,
    response: &'r mut Response<'o>,
    /// Generates records online; `None` if the image contains all records.
    online: Option<&'r mut OnlineContext<'i, 'w>>,
    /// Whether the client accepts NXDOMAIN with compact denial (RFC 9824 §5.1).
    accepts_compact_nxdomain: bool,
    /// Category of the response, as in [`AnswerInfo::category`].
    category: ResponseCategory,
    /// Name that the response comes from, as in [`AnswerInfo::source_name`].
    source_name: NameRef<'i>,
    /// Number of aliases in the response, at most [`MAX_ALIASES`].
    alias_count: usize,
    /// Proofs for the aliases in the response. They follow after all answers. Usually empty.
    alias_proofs: Vec<Template<'i>>,
    /// DNAME RRsets in the answer section; a DNAME RRset that applies twice is added once (RFC 2181
    /// §5).
    added_dnames: Vec<Template<'i>>,
}

/// A match of a name with a wildcard.
#[derive(Clone, Copy)]
struct WildcardMatch<'n, 'i> {
    name: NameRef<'n>,
    /// The closest encloser of the name; the wildcard is its child.
    encloser: ImageNode<'i>,
}

/// Result of the lookup of one name: the query name, or the target of an alias.
enum LookupStep {
    /// The response is complete.
    Complete,
    /// Required data did not fit: the response must be truncated.
    Truncate,
    /// The response ends with an alias. The lookup continues with its target, which is at
    /// `target_offset` of the response.
    Alias { target_offset: usize },
    /// The name is an alias, and the response already has [`MAX_ALIASES`] aliases. This alias is
    /// omitted; the resolver queries for its name.
    TooManyAliases,
}

impl<'i> AnswerBuilder<'i, '_, '_, '_> {
    /// Answers for `name` and for the targets of its aliases. Returns whether the response must be
    /// truncated, because required data did not fit.
    fn answer_with_aliases(&mut self, name: NameRef<'_>) -> bool {
        let mut step = self.look_up(name, OwnerForm::AsRendered);
        let mut seen_targets = Vec::new();
        while let LookupStep::Alias { target_offset } = step {
            let Ok((target, _)) = Name::from_message(self.response.octets(), target_offset) else { break };
            // A compression pointer has 14 bits for the offset (RFC 1035 §4.1.4).
            let Some(pointer) = u16::try_from(target_offset).ok().filter(|offset| *offset < 0x4000) else {
                break;
            };
            let target = target.view().to_canonical();
            // RFC 1034 §4.3.2 step 3a: the resolver follows a target outside the zone.
            if !target.view().is_at_or_below(self.image.apex()) {
                break;
            }
            // The response already contains the complete loop; no record may occur twice in a
            // section (RFC 2181 §5).
            if target.view() == name || seen_targets.contains(&target) {
                break;
            }
            step = self.look_up(target.view(), OwnerForm::At(0xc000 | pointer));
            seen_targets.push(target);
        }
        match step {
            LookupStep::Complete => false,
            LookupStep::Truncate => true,
            LookupStep::Alias { .. } | LookupStep::TooManyAliases => {
                self.add_proofs(&Proof::default());
                false
            }
        }
    }

    /// Performs RFC 1034 §4.3.2 step 3 once for `name`; `owner` is the form of this name in the
    /// response.
    fn look_up(&mut self, name: NameRef<'_>, owner: OwnerForm) -> LookupStep {
        match self.image.find(name) {
            Lookup::Exact(node) => match node.kind() {
                NodeKind::Delegation if self.qtype == Rtype::DS => self.answer_ds(node, owner),
                NodeKind::Delegation => self.add_referral(node),
                NodeKind::Authoritative | NodeKind::HashChainOwner => self.answer_node(node, owner, None),
            },
            Lookup::Encloser(node) => match node.kind() {
                NodeKind::Delegation => self.add_referral(node),
                NodeKind::Authoritative | NodeKind::HashChainOwner => self.answer_below(name, node, owner),
            },
        }
    }

    /// Answers for a name that does not exist. `encloser` is its closest encloser, or the owner of
    /// a DNAME record above it.
    fn answer_below(&mut self, name: NameRef<'_>, encloser: ImageNode<'i>, owner: OwnerForm) -> LookupStep {
        if let Some(dname) = encloser.template(Rtype::DNAME) {
            return self.answer_dname(name, encloser, dname, owner);
        }
        // Two more octets for the label `*`.
        let mut wildcard_buffer = [0; MAX_NAME + 2];
        match self.image.find_exact(encloser.name().write_wildcard(&mut wildcard_buffer)) {
            // RFC 4592 §4.2: a wildcard that is a zone cut matches nothing.
            Some(wildcard) if wildcard.kind() == NodeKind::Authoritative => {
                self.answer_node(wildcard, owner, Some(WildcardMatch { name, encloser }))
            }
            _ => {
                self.deny_name(name, encloser, owner);
                LookupStep::Complete
            }
        }
    }

    /// Answers from the records of `node`. `wildcard_match` is `Some` if `node` is a wildcard that
    /// matches the name.
    fn answer_node(
        &mut self,
        node: ImageNode<'i>,
        owner: OwnerForm,
        wildcard_match: Option<WildcardMatch<'_, 'i>>,
    ) -> LookupStep {
        // RFC 4592 §4.7: the owner in the answer is the query name. This includes an NSEC record,
        // although its template has its own owner.
        let is_expanded = wildcard_match.is_some() && owner == OwnerForm::AsRendered;
        let owner = if is_expanded { OwnerForm::At(QUESTION_POINTER) } else { owner };
        (self.category, self.source_name) = (ResponseCategory::Positive, node.name());
        let start = self.response.next_offset();
        if !self.add_answers(node, owner, wildcard_match) {
            if let Some(alias) = node.template(Rtype::CNAME) {
                if self.alias_count == MAX_ALIASES {
                    return LookupStep::TooManyAliases;
                }
                self.alias_count += 1;
                self.add(
                    Section::Answer,
                    alias,
                    owner,
                    wildcard_match.map(|wildcard_match| wildcard_match.name),
                );
                if let Some(WildcardMatch { name, encloser }) = wildcard_match {
                    let proof = self.prove(DenialTarget::WildcardExpansion { name, encloser });
                    self.alias_proofs.extend(proof.templates());
                }
                if self.response.is_too_large() {
                    return LookupStep::Truncate;
                }
                return LookupStep::Alias { target_offset: start + RDATA_OFFSET };
            }
            let denied = match wildcard_match {
                None => DenialTarget::NoData { node },
                Some(WildcardMatch { name, encloser }) => {
                    DenialTarget::WildcardNoData { name, encloser, wildcard: node }
                }
            };
            self.category = ResponseCategory::Nodata;
            self.deny(denied);
            return LookupStep::Complete;
        }
        match wildcard_match {
            // RFC 4035 §3.1.3.3: proves that no closer match than the wildcard exists.
            Some(WildcardMatch { name, encloser }) => {
                self.prove_last_name(DenialTarget::WildcardExpansion { name, encloser })
            }
            None => self.add_proofs(&Proof::default()),
        }
        LookupStep::Complete
    }

    /// Adds the RRsets that answer the query type. Returns whether the node has any.
    fn add_answers(
        &mut self,
        node: ImageNode<'i>,
        owner: OwnerForm,
        wildcard_match: Option<WildcardMatch<'_, 'i>>,
    ) -> bool {
        let expanded_name = wildcard_match.map(|wildcard_match| wildcard_match.name);
        match self.qtype {
            // RFC 8482 §4.1: one RRset answers for all types. It must be data, not a denial record.
            Rtype::ANY => {
                let is_data =
                    |template: &Template<'_>| !matches!(template.rtype(), Rtype::NSEC | Rtype::NSEC3);
                self.add_answer(node.templates().find(is_data), owner, expanded_name)
            }
            Rtype::RRSIG => {
                let mut added = false;
                for template in
                    node.templates().filter(|t| t.rtype() != Rtype::NSEC3 && t.signature_count() > 0)
                {
                    if !(self.response.dnssec_ok && self.is_dname_added(template)) {
                        self.response.add_signatures(template, owner);
                    }
                    added = true;
                }
                added || self.add_online_signature(node, owner)
            }
            // RFC 5155 §7.2.8: NSEC3 records never answer a query.
            Rtype::NSEC3 => false,
            Rtype::NSEC if self.online.is_some() => self.add_nsec(node, owner, wildcard_match),
            qtype => self.add_answer(node.template(qtype), owner, expanded_name),
        }
    }

    /// Adds signatures generated online to the answer to a query for RRSIG. Signs only one RRset
    /// (RFC 8482 §4.1), so that a client cannot cause signatures for all RRsets of a node with one
    /// query. Returns `false` if the node has no RRset to sign, or the query has no DO flag.
    fn add_online_signature(&mut self, node: ImageNode<'i>, owner: OwnerForm) -> bool {
        let Some(online) = &mut self.online else { return false };
        let Some(template) = node.templates().find(|template| online.is_signed_online(*template)) else {
            return false;
        };
        if self.response.dnssec_ok {
            let pointer = if let OwnerForm::At(pointer) = owner { pointer } else { QUESTION_POINTER };
            online.add_signatures(self.response, template, pointer);
        }
        self.response.dnssec_ok
    }

    /// Adds the NSEC record that is generated for an existing node, as the answer to a query for
    /// NSEC. Returns `false` if the denial mechanism generates no such record.
    fn add_nsec(
        &mut self,
        node: ImageNode<'i>,
        owner: OwnerForm,
        wildcard_match: Option<WildcardMatch<'_, 'i>>,
    ) -> bool {
        let is_compact = self.online.as_ref().is_some_and(|online| online.is_compact());
        if let Some(WildcardMatch { name, encloser }) = wildcard_match.filter(|_| !is_compact) {
            // The record that covers the name may also have the wildcard as owner. It is noted
            // first, so that `nsec_record` merges it into the record of the answer.
            self.prove(DenialTarget::WildcardExpansion { name, encloser });
        }
        let Some(online) = &mut self.online else { return false };
        let (denied, signed_owner) = match wildcard_match {
            None => (DenialTarget::NoData { node }, node.name()),
            Some(WildcardMatch { name, .. }) if is_compact => {
                (DenialTarget::WildcardNoData { name, encloser: node, wildcard: node }, name)
            }
            // The NSEC record at the wildcard answers for a name that the wildcard matches.
            Some(_) => (DenialTarget::NoData { node }, node.name()),
        };
        let Some(record) = online.nsec_record(denied, signed_owner) else { return false };
        let pointer = if let OwnerForm::At(pointer) = owner { pointer } else { QUESTION_POINTER };
        online.add_generated(self.response, Section::Answer, &record, Some(pointer));
        true
    }

    /// Adds an RRset of the zone. If the query has the DO flag, also adds its signatures, from the
    /// image or generated online. `expanded_name` is the name to which the wildcard that owns the
    /// RRset was expanded; `None` for other RRsets.
    fn add(
        &mut self,
        section: Section,
        template: Template<'i>,
        owner: OwnerForm,
        expanded_name: Option<NameRef<'_>>,
    ) {
        let start = self.response.next_offset();
        self.response.add(section, template, owner);
        if let Some(online) = &mut self.online
            && self.response.dnssec_ok
            && !self.response.is_too_large()
        {
            online.add_missing_signatures(self.response, section, start, template, expanded_name);
        }
    }

    /// Adds the RRset `template` as an answer, unless it is a DNAME RRset that the response already
    /// contains. Returns `false` if there is no RRset.
    fn add_answer(
        &mut self,
        template: Option<Template<'i>>,
        owner: OwnerForm,
        expanded_name: Option<NameRef<'_>>,
    ) -> bool {
        let Some(template) = template else { return false };
        if !self.is_dname_added(template) {
            self.add(Section::Answer, template, owner, expanded_name);
        }
        true
    }

    /// Returns whether the answer section already contains this DNAME RRset.
    fn is_dname_added(&self, template: Template<'_>) -> bool {
        self.added_dnames.iter().any(|other| other.is_same(template))
    }

    /// Adds the DNAME record and the CNAME record synthesised from it (RFC 6672 §3.2).
    fn answer_dname(
        &mut self,
        name: NameRef<'_>,
        above: ImageNode<'i>,
        dname: Template<'i>,
        owner: OwnerForm,
    ) -> LookupStep {
        (self.category, self.source_name) = (ResponseCategory::Positive, above.name());
        let Some(record) = dname.expand().into_iter().next() else { return LookupStep::Complete };
        let (ttl, target) = (record.ttl, record.rdata);
        let prefix = &name.wire()[..name.len() - above.name().len()];
        let is_too_long = prefix.len() + target.len() > MAX_NAME;
        if self.alias_count == MAX_ALIASES && !is_too_long {
            return LookupStep::TooManyAliases;
        }
        self.alias_count += 1;
        let is_query_name = owner == OwnerForm::AsRendered;
        let dname_owner = if is_query_name {
            self.response.suffix_pointer(above.name().len())
        } else {
            OwnerForm::WrittenOut
        };
        if !self.is_dname_added(dname) {
            self.add(Section::Answer, dname, dname_owner, None);
            self.added_dnames.push(dname);
        }
        if self.response.is_too_large() {
            return LookupStep::Truncate;
        }
        if is_too_long {
            // RFC 6672 §2.2: the name after substitution is too long.
            self.response.rcode = Rcode::YXDOMAIN;
            self.add_proofs(&Proof::default());
            return LookupStep::Complete;
        }
        let start = self.response.next_offset();
        self.response.add_record(|out| {
            let pointer = if let OwnerForm::At(pointer) = owner { pointer } else { QUESTION_POINTER };
            out.extend_from_slice(&pointer.to_be_bytes());
            push_record_fields(Rtype::CNAME, ttl, (prefix.len() + target.len()) as u16, out);
            out.extend_from_slice(prefix);
            out.extend_from_slice(&target);
        });
        if self.qtype == Rtype::CNAME {
            // RFC 6672 §3.2: the synthesised CNAME record answers the query.
            self.add_proofs(&Proof::default());
            return LookupStep::Complete;
        }
        LookupStep::Alias { target_offset: start + RDATA_OFFSET }
    }
}
