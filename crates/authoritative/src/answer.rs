//! Answers a query from a zone image (RFC 1034 §4.3.2, RFC 4035 §3.1, RFC 5155 §7.2, RFC 6672 §3.2,
//! RFC 8482, RFC 8906).

mod denial;
mod referral;

use crate::online::OnlineContext;
use crate::response::{Response, Section};
use nonesuch_dnssec::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, MAX_NAME, Name, NameRef, Rtype, edns};
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::limits::ResponseCategory as ResponseClass;
use nonesuch_server::query::Query;
use nonesuch_server::trailer::{Trailer, Transport};
use nonesuch_zone::Image;
use nonesuch_zone::image::{
    ImageNode, Lookup, NodeKind, OwnerForm, QUESTION_POINTER, Template, push_record_fields,
};

/// Maximum number of CNAME and DNAME links in one response. The target of the last link is also
/// looked up.
const MAX_LINKS: usize = 17;

/// A query and everything else, apart from the zone, that its response depends on.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub(crate) query: &'a Query<'a>,
    /// The query name in lower case.
    pub(crate) name: NameRef<'a>,
    pub(crate) transport: Transport,
    pub(crate) trailer: &'a Trailer<'a>,
}

impl<'a> Request<'a> {
    /// Creates the request for a `query` received over `transport`. Writes the query name in lower
    /// case to `room`.
    // Every query calls this function. Inlined, it does not copy values that the caller already
    // has.
    #[inline(always)]
    pub fn new(
        query: &'a Query<'a>,
        room: &'a mut [u8; MAX_NAME],
        transport: Transport,
        trailer: &'a Trailer<'a>,
    ) -> Self {
        Self { query, name: query.lower_name(room), transport, trailer }
    }
}

impl Request<'_> {
    /// Appends the OPT record to a response that is not built with [`Response`], if the query has
    /// one.
    pub(crate) fn push_opt_alone(&self, out: &mut Vec<u8>) {
        let Some(opt) = &self.query.opt else { return };
        let trailer = Trailer { reply: self.trailer.reply.without_padding(), ..*self.trailer };
        let limit = trailer.datagram_octets(self.query);
        trailer.push_opt(Rcode::NOERROR, opt.flags & edns::DO, None, limit, out);
    }
}

/// Properties of a response that rate limiting and online signing need.
#[derive(Clone, Copy, Debug)]
pub struct AnswerInfo<'i> {
    /// The category of the response for rate limiting.
    pub class: ResponseClass,
    /// The name in the zone that the response comes from: the owner of the answer, the zone cut or
    /// the apex.
    pub source: NameRef<'i>,
    /// Whether the response is deferred, because it lacks records that are generated online.
    pub is_deferred: bool,
}

/// Answers a query for a name in the zone of `image`. Clears `out` and writes the response to it.
/// If the zone is signed online, the response lacks the records that are generated online.
#[inline]
pub fn answer<'i>(image: &'i Image, request: &Request<'_>, out: &mut Vec<u8>) -> AnswerInfo<'i> {
    answer_from(image, None, request, out)
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

/// Response code and extended error for a query that the server does not answer from a zone.
pub(crate) struct ErrorResponse {
    pub(crate) rcode: Rcode,
    pub(crate) error: Option<ExtendedError>,
}

/// Returns the error response for a query that no zone can answer, or `None` for all other queries.
pub(crate) fn check_answerable(query: &Query<'_>) -> Option<ErrorResponse> {
    let declined = |rcode, error| Some(ErrorResponse { rcode, error });
    if query.opt.is_some_and(|opt| opt.version != 0) {
        return declined(Rcode::BADVERS, None);
    }
    match query.qtype {
        Rtype::MAILA | Rtype::MAILB => declined(Rcode::NOTIMP, None),
        Rtype::OPT | Rtype::TSIG | Rtype::TKEY => declined(Rcode::FORMERR, None),
        // RFC 9824 §3.5: NXNAME is not a valid query type.
        Rtype::NXNAME => declined(Rcode::FORMERR, Some(ExtendedError::INVALID_QUERY_TYPE)),
        _ if query.class != Class::IN => declined(Rcode::REFUSED, Some(ExtendedError::NOT_AUTHORITATIVE)),
        _ => None,
    }
}

/// Answers a query as [`answer`] does, and adds the records that `online` generates. If they are
/// not available yet, `online` queues them and the response is deferred.
pub(crate) fn answer_from<'i>(
    image: &'i Image,
    mut online: Option<&mut OnlineContext<'i, '_>>,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> AnswerInfo<'i> {
    let query = request.query;
    let mut response = Response::begin(query, request.transport, request.trailer, out);
    response.authoritative = true;
    let compact_ok = query.opt.is_some_and(|opt| opt.flags & edns::CO != 0);
    if compact_ok && online.as_ref().is_some_and(|online| online.is_compact()) {
        response.set_compact_ok();
    }
    let mut answerer = AnswerBuilder {
        image,
        qtype: query.qtype,
        response: &mut response,
        online: online.as_deref_mut(),
        compact_ok,
        class: ResponseClass::Positive,
        source: image.apex(),
        links: 0,
        alias_proofs: Vec::new(),
        dnames: Vec::new(),
    };
    let truncate = answerer.follow(request.name);
    let (class, source) = (answerer.class, answerer.source);
    response.finish(query, truncate);
    AnswerInfo { class, source, is_deferred: online.is_some_and(|online| online.is_deferred) }
}

struct AnswerBuilder<'i, 'w, 'r, 'o> {
    image: &'i Image,
    qtype: Rtype,
    response: &'r mut Response<'o>,
    /// Generates records online; `None` if the image contains all records.
    online: Option<&'r mut OnlineContext<'i, 'w>>,
    /// Whether the client accepts NXDOMAIN with compact denial (RFC 9824 §5.1).
    compact_ok: bool,
    /// Category of the response, and the name in the zone that the response comes from.
    class: ResponseClass,
    source: NameRef<'i>,
    /// Number of CNAME and DNAME links in the response.
    links: usize,
    /// Proofs for the aliases in the response. They follow after all answers. Usually empty.
    alias_proofs: Vec<Template<'i>>,
    /// DNAME RRsets in the answer section; a DNAME RRset that applies twice is added once (RFC 2181
    /// §5).
    dnames: Vec<Template<'i>>,
}

/// A match of a name with a wildcard.
#[derive(Clone, Copy)]
struct WildcardMatch<'n, 'i> {
    name: NameRef<'n>,
    /// The closest encloser of the name; the wildcard is its child.
    encloser: ImageNode<'i>,
}

/// Result of one step of the lookup.
enum Step {
    /// The response is complete; `true` if it must be truncated.
    Done(bool),
    /// An alias; the lookup continues with the name at this offset of the response.
    Follow(usize),
    /// An alias beyond [`MAX_LINKS`]. It is omitted; the resolver queries for its name.
    Limit,
}

impl<'i> AnswerBuilder<'i, '_, '_, '_> {
    /// Answers for `name` and for the targets of its aliases. Returns whether required data did not
    /// fit.
    fn follow(&mut self, name: NameRef<'_>) -> bool {
        let mut step = self.look_up(name, OwnerForm::AsRendered);
        let mut followed = Vec::new();
        while let Step::Follow(at) = step {
            let Ok((target, _)) = Name::from_message(self.response.octets(), at) else { break };
            let Some(pointer) = u16::try_from(at).ok().filter(|at| *at < 0x4000) else { break };
            let target = target.view().to_canonical();
            // RFC 1034 §4.3.2 step 3a: the resolver follows a target outside the zone.
            if !target.view().is_at_or_below(self.image.apex()) {
                break;
            }
            // The response already contains the complete loop; no record may occur twice in a
            // section (RFC 2181 §5).
            if target.view() == name || followed.contains(&target) {
                break;
            }
            step = self.look_up(target.view(), OwnerForm::At(0xc000 | pointer));
            followed.push(target);
        }
        match step {
            Step::Done(truncate) => truncate,
            Step::Follow(_) | Step::Limit => {
                self.finish_proof(&Proof::default());
                false
            }
        }
    }

    /// Performs RFC 1034 §4.3.2 step 3 once for `name`; `owner` is the form of this name in the
    /// response.
    fn look_up(&mut self, name: NameRef<'_>, owner: OwnerForm) -> Step {
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
    fn answer_below(&mut self, name: NameRef<'_>, encloser: ImageNode<'i>, owner: OwnerForm) -> Step {
        if let Some(dname) = encloser.template(Rtype::DNAME) {
            return self.answer_dname(name, encloser, dname, owner);
        }
        let mut room = [0; MAX_NAME + 2];
        match self.image.find_exact(encloser.name().write_wildcard(&mut room)) {
            // RFC 4592 §4.2: a wildcard that is a zone cut matches nothing.
            Some(source) if source.kind() == NodeKind::Authoritative => {
                self.answer_node(source, owner, Some(WildcardMatch { name, encloser }))
            }
            _ => {
                self.deny_name(name, encloser, owner);
                Step::Done(false)
            }
        }
    }

    /// Answers from the records of `node`. `matched` is set if `node` is a wildcard that matches
    /// the name.
    fn answer_node(
        &mut self,
        node: ImageNode<'i>,
        owner: OwnerForm,
        matched: Option<WildcardMatch<'_, 'i>>,
    ) -> Step {
        // RFC 4592 §4.7: the owner in the answer is the query name. This includes an NSEC record,
        // although its template has its own owner.
        let is_expanded = matched.is_some() && owner == OwnerForm::AsRendered;
        let owner = if is_expanded { OwnerForm::At(QUESTION_POINTER) } else { owner };
        (self.class, self.source) = (ResponseClass::Positive, node.name());
        let before = self.response.end();
        if !self.add_answers(node, owner, matched) {
            if let Some(alias) = node.template(Rtype::CNAME) {
                if self.links == MAX_LINKS {
                    return Step::Limit;
                }
                self.links += 1;
                self.add(Section::Answer, alias, owner, matched.map(|matched| matched.name));
                if let Some(WildcardMatch { name, encloser }) = matched {
                    let proof = self.prove(DenialTarget::CloserMatch { name, encloser });
                    self.alias_proofs.extend(proof.templates());
                }
                if self.response.is_too_large() {
                    return Step::Done(true);
                }
                // The RDATA begins after the owner pointer, type, class, TTL and length.
                return Step::Follow(before + 12);
            }
            let denied = match matched {
                None => DenialTarget::Type { node },
                Some(WildcardMatch { name, encloser }) => {
                    DenialTarget::WildcardType { name, encloser, wildcard: node }
                }
            };
            self.class = ResponseClass::Nodata;
            self.deny(denied);
            return Step::Done(false);
        }
        match matched {
            // RFC 4035 §3.1.3.3: proves that no closer match than the wildcard exists.
            Some(WildcardMatch { name, encloser }) => {
                self.prove_last(DenialTarget::CloserMatch { name, encloser })
            }
            None => self.finish_proof(&Proof::default()),
        }
        Step::Done(false)
    }

    /// Adds the RRsets that answer the query type. Returns whether the node has any.
    fn add_answers(
        &mut self,
        node: ImageNode<'i>,
        owner: OwnerForm,
        matched: Option<WildcardMatch<'_, 'i>>,
    ) -> bool {
        let expanded = matched.map(|matched| matched.name);
        match self.qtype {
            // RFC 8482 §4.1: one RRset answers for all types. It must be data, not a denial record.
            Rtype::ANY => {
                let is_data =
                    |template: &Template<'_>| !matches!(template.rtype(), Rtype::NSEC | Rtype::NSEC3);
                self.add_answer(node.templates().find(is_data), owner, expanded)
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
            Rtype::NSEC if self.online.is_some() => self.add_nsec(node, owner, matched),
            qtype => self.add_answer(node.template(qtype), owner, expanded),
        }
    }

    /// Adds signatures generated online to the answer to a query for RRSIG. Signs only one RRset
    /// (RFC 8482 §4.1), so that a client cannot cause signatures for all RRsets of a node with one
    /// query.
    fn add_online_signature(&mut self, node: ImageNode<'i>, owner: OwnerForm) -> bool {
        let Some(online) = &mut self.online else { return false };
        let Some(template) = node.templates().find(|template| online.is_to_sign(*template)) else {
            return false;
        };
        if self.response.dnssec_ok {
            let pointer = if let OwnerForm::At(pointer) = owner { pointer } else { QUESTION_POINTER };
            online.add_signatures(self.response, template, pointer);
        }
        self.response.dnssec_ok
    }

    /// Adds the NSEC record that is generated for an existing node, as the answer to a query for
    /// NSEC.
    fn add_nsec(
        &mut self,
        node: ImageNode<'i>,
        owner: OwnerForm,
        matched: Option<WildcardMatch<'_, 'i>>,
    ) -> bool {
        let is_compact = self.online.as_ref().is_some_and(|online| online.is_compact());
        if let Some(WildcardMatch { name, encloser }) = matched.filter(|_| !is_compact) {
            // The record that covers the name may also have the wildcard as owner. Noted first, it
            // is merged into the record of the answer.
            self.prove(DenialTarget::CloserMatch { name, encloser });
        }
        let Some(online) = &mut self.online else { return false };
        let (denied, signed_owner) = match matched {
            None => (DenialTarget::Type { node }, node.name()),
            Some(WildcardMatch { name, .. }) if is_compact => {
                (DenialTarget::WildcardType { name, encloser: node, wildcard: node }, name)
            }
            // The NSEC record at the wildcard answers for a name that the wildcard matches.
            Some(_) => (DenialTarget::Type { node }, node.name()),
        };
        let Some(record) = online.nsec_record(denied, signed_owner) else { return false };
        let pointer = if let OwnerForm::At(pointer) = owner { pointer } else { QUESTION_POINTER };
        online.add_generated(self.response, Section::Answer, &record, Some(pointer));
        true
    }

    /// Adds an RRset of the zone. If the query has the DO flag, also adds its signatures, from the
    /// image or generated online. `expanded` is the name that a wildcard matched.
    fn add(
        &mut self,
        section: Section,
        template: Template<'i>,
        owner: OwnerForm,
        expanded: Option<NameRef<'_>>,
    ) {
        let start = self.response.end();
        self.response.add(section, template, owner);
        if let Some(online) = &mut self.online
            && self.response.dnssec_ok
            && !self.response.is_too_large()
        {
            online.sign(self.response, section, start, template, expanded);
        }
    }

    /// Adds an RRset that answers the query, unless the response already contains it as a DNAME.
    /// Returns whether `template` is an RRset.
    fn add_answer(
        &mut self,
        template: Option<Template<'i>>,
        owner: OwnerForm,
        expanded: Option<NameRef<'_>>,
    ) -> bool {
        let Some(template) = template else { return false };
        if !self.is_dname_added(template) {
            self.add(Section::Answer, template, owner, expanded);
        }
        true
    }

    fn is_dname_added(&self, template: Template<'_>) -> bool {
        self.dnames.iter().any(|other| other.is_same(template))
    }

    /// Adds the DNAME record and the CNAME record synthesised from it (RFC 6672 §3.2).
    fn answer_dname(
        &mut self,
        name: NameRef<'_>,
        above: ImageNode<'i>,
        dname: Template<'i>,
        owner: OwnerForm,
    ) -> Step {
        (self.class, self.source) = (ResponseClass::Positive, above.name());
        let Some(record) = dname.expand().into_iter().next() else { return Step::Done(false) };
        let (ttl, target) = (record.ttl, record.rdata);
        let prefix = &name.wire()[..name.len() - above.name().len()];
        let is_too_long = prefix.len() + target.len() > MAX_NAME;
        if self.links == MAX_LINKS && !is_too_long {
            return Step::Limit;
        }
        self.links += 1;
        let is_question = owner == OwnerForm::AsRendered;
        let dname_owner = if is_question {
            self.response.suffix_pointer(above.name().len())
        } else {
            OwnerForm::WrittenOut
        };
        if !self.is_dname_added(dname) {
            self.add(Section::Answer, dname, dname_owner, None);
            self.dnames.push(dname);
        }
        if self.response.is_too_large() {
            return Step::Done(true);
        }
        if is_too_long {
            // RFC 6672 §2.2: the name after substitution is too long.
            self.response.rcode = Rcode::YXDOMAIN;
            self.finish_proof(&Proof::default());
            return Step::Done(false);
        }
        let at = self.response.end();
        self.response.add_record(|out| {
            let pointer = if let OwnerForm::At(pointer) = owner { pointer } else { QUESTION_POINTER };
            out.extend_from_slice(&pointer.to_be_bytes());
            push_record_fields(Rtype::CNAME, ttl, (prefix.len() + target.len()) as u16, out);
            out.extend_from_slice(prefix);
            out.extend_from_slice(&target);
        });
        if self.qtype == Rtype::CNAME {
            // RFC 6672 §3.2: the synthesised CNAME record answers the query.
            self.finish_proof(&Proof::default());
            return Step::Done(false);
        }
        Step::Follow(at + 12)
    }
}
