//! The rows of the catalog, sorted by number; a test checks the order.

use super::{Reason, ReasonRow, Severity};
use Severity::{Error, Info, Warning};

/// The column that tells an unknown verdict from a refusal: `unknown`, or empty.
macro_rules! is_unknown {
    () => {
        false
    };
    (unknown) => {
        true
    };
}

macro_rules! catalog {
    ($($constant:ident = $name:literal $code:literal $severity:ident $($verdict:ident)? ($condition:literal, $reason:literal) $summary:literal $help:literal;)*) => {
        /// Every row, sorted by number.
        pub static CATALOG: &[ReasonRow] = &[$(ReasonRow {
            name: $name, code: $code, severity: $severity, is_unknown: is_unknown!($($verdict)?), condition: ($condition, $reason), summary: $summary, help: $help,
        }),*];
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Index { $($constant),* }
        $(#[doc = $summary] pub const $constant: Reason = Reason(Index::$constant as u16);)*
    };
}

catalog! {
    // GP01: could not see.
    KIND_NOT_VISIBLE = "kind-not-visible" "GP0101" Warning unknown ("", "")
        "A kind of object could not be listed, so nothing that depends on it is decided."
        "Grant the right that the message names, or install the kind; until then what is published is kept.";
    KIND_NOT_WATCHED = "kind-not-watched" "GP0103" Warning ("", "")
        "A kind of object may be listed and not watched, so its changes are seen late."
        "Grant the verb `watch` on the resource that the message names; until then it is listed again and again.";
    LIST_DOUBTED = "list-doubted" "GP0104" Warning ("", "")
        "A list is suddenly empty, or older than what was seen before, so it is not believed yet."
        "Find out whether the store of the API server was set back, or something between lies; what is published is kept meanwhile.";
    OBJECT_UNREADABLE = "object-unreadable" "GP0105" Error ("", "")
        "An object could not be understood and is left out."
        "Correct the field that the message names; the other objects are not affected.";
    SYNTAX_ERROR = "syntax-error" "GP0106" Error ("", "")
        "A text is neither YAML nor JSON."
        "Correct the YAML or JSON at the position shown; the other documents are not affected.";
    UNKNOWN_FIELD = "unknown-field" "GP0107" Error ("", "")
        "A field is not part of the API; `kubectl apply` refuses it, and a cluster drops it."
        "Check the spelling and the indentation; the field has no effect.";
    UNKNOWN_VALUE = "unknown-value" "GP0108" Warning ("", "")
        "A field has a value that this release of the API does not know."
        "Use one of the values that the message lists.";
    DUPLICATE_OBJECT = "duplicate-object" "GP0109" Error ("", "")
        "Two documents describe the same object; the later one is used."
        "Remove one of the two, or give it another name.";
    INVALID_FIELD = "invalid-field" "GP0110" Error unknown ("Accepted", "Invalid")
        "A field breaks a rule of the API, so a cluster would refuse the object, and nothing is published or deleted because of it."
        "Change the field as the message says.";
    ALLOWED_LISTENERS_SHAPE = "allowed-listeners-shape" "GP0111" Error ("", "")
        "`allowedListeners` is a list, the shape of an early draft."
        "Write one object: `allowedListeners: {namespaces: {from: Same}}`.";
    CLASS_NOT_IN_INPUT = "class-not-in-input" "GP0112" Info ("", "")
        "The GatewayClass of a Gateway is not among the files, so it is taken as accepted."
        "Nothing to do, unless the class name is misspelt; add the GatewayClass to the files to have it checked.";
    NAMESPACE_ASSUMED = "namespace-assumed" "GP0113" Info ("", "")
        "Objects in files state no namespace, so theirs is an assumption."
        "Name it with `--default-namespace NAME`, set `metadata.namespace`, or render with `-k DIR` or `--helm DIR`.";
    UNRENDERED_TEMPLATE = "unrendered-template" "GP0114" Error ("", "")
        "A text is a template that is not rendered, so no objects are read from it."
        "Render it first: `--helm DIR` for a chart, or give the rendered manifests with `-f`.";
    OBJECT_INCOMPLETE = "object-incomplete" "GP0115" Info unknown ("", "")
        "Placeholders or patches complete an object before it reaches a cluster, so what depends on it is not checked."
        "Render it with `-k DIR` or `--helm DIR`, or give the rendered manifests with `-f`.";
    CHART_NOT_RENDERED = "chart-not-rendered" "GP0116" Info ("", "")
        "The templates of a Helm chart are not read, because they are not rendered."
        "Render the chart with `--helm DIR`, and name values with `--values FILE`.";
    OBJECT_IN_OVERLAYS = "object-in-overlays" "GP0117" Info ("", "")
        "Several kustomizations have an object of the same kind, namespace and name; one of them is used for the answer."
        "Nothing to do if they are for different clusters; check each of them by itself with `-k DIR`.";

    // GP02: not attached.
    GATEWAY_CLASS_MISSING = "gateway-class-missing" "GP0200" Error unknown ("Accepted", "Pending")
        "The GatewayClass of a Gateway does not exist, so nobody runs the Gateway."
        "Create the GatewayClass or correct `spec.gatewayClassName`.";
    GATEWAY_CLASS_NOT_OURS = "gateway-class-not-ours" "GP0201" Info ("", "")
        "The Gateway is of a class that `--gateway-class` leaves out."
        "Add its class to `--gateway-class` if Gatepost is to look after it.";
    GATEWAY_NOT_ACCEPTED = "gateway-not-accepted" "GP0202" Error ("Accepted", "ListenersNotValid")
        "A Gateway is not accepted: none of its listeners is valid, or its settings are not supported."
        "Correct the listeners or settings that the message names.";
    ROUTE_KIND_NOT_ALLOWED = "route-kind-not-allowed" "GP0203" Error ("Accepted", "NotAllowedByListeners")
        "A listener does not take routes of this kind."
        "Attach to a listener whose protocol carries this kind, or allow the kind in `allowedRoutes.kinds`.";
    NAMESPACE_NOT_ALLOWED = "namespace-not-allowed" "GP0204" Error ("Accepted", "NotAllowedByListeners")
        "A listener does not take routes from this namespace."
        "Label the namespace as the listener's selector asks, or widen `allowedRoutes.namespaces`.";
    SECTION_NOT_FOUND = "section-not-found" "GP0205" Error ("Accepted", "NoMatchingParent")
        "The parent has no listener of the name or port that the route asks for."
        "Correct `sectionName` or `port` of the parentRef.";
    NO_COMMON_HOSTNAME = "no-common-hostname" "GP0206" Error ("Accepted", "NoMatchingListenerHostname")
        "The hostnames of the route and of the listener have nothing in common."
        "Use a hostname that the listener covers, or attach to a listener that covers the hostname.";
    LISTENER_SET_NOT_ALLOWED = "listener-set-not-allowed" "GP0207" Error ("Accepted", "NotAllowed")
        "The Gateway does not admit ListenerSets from this namespace."
        "Set `spec.allowedListeners.namespaces.from` on the Gateway; the default is None.";
    REFERENCE_NOT_PERMITTED = "reference-not-permitted" "GP0208" Error ("ResolvedRefs", "RefNotPermitted")
        "An object refers into another namespace, and no ReferenceGrant there permits it."
        "Create a ReferenceGrant in the namespace that is referred to, or use an object of the own namespace.";
    STATUS_STALE = "status-stale" "GP0209" Warning unknown ("", "")
        "A status speaks of an older generation of the object, so it decides nothing."
        "Wait for the Gateway implementation to catch up, or find out why it does not.";
    PARENT_MISSING = "parent-missing" "GP0210" Error ("", "")
        "A route wants to attach to an object that is not there."
        "Correct kind, namespace or name of the parentRef, or create the object.";
    PARENT_KIND_UNKNOWN = "parent-kind-unknown" "GP0211" Info ("", "")
        "A parentRef names a kind that is neither a Gateway nor a ListenerSet."
        "Nothing to do for mesh routes; otherwise correct group and kind of the parentRef.";
    PROTOCOL_UNSUPPORTED = "protocol-unsupported" "GP0212" Error ("Accepted", "UnsupportedProtocol")
        "A listener's protocol is not one that the Gateway API defines."
        "Use HTTP, HTTPS, TLS, TCP or UDP.";
    TLS_MODE_UNSUPPORTED = "tls-mode-unsupported" "GP0213" Error ("Accepted", "UnsupportedValue")
        "A listener's TLS mode does not go with its protocol."
        "Use Terminate, or Passthrough on a TLS listener.";
    CERTIFICATE_MISSING = "certificate-missing" "GP0214" Error ("ResolvedRefs", "InvalidCertificateRef")
        "A listener names a Secret that is not there, or something that is not a Secret."
        "Create the Secret, or let a TLSPolicy have it issued; correct `certificateRefs` otherwise.";
    CERTIFICATE_MALFORMED = "certificate-malformed" "GP0215" Error ("ResolvedRefs", "InvalidCertificateRef")
        "A listener names a Secret that holds no usable certificate."
        "Put a PEM certificate chain into `tls.crt` and its key into `tls.key`.";
    LISTENER_KIND_UNFIT = "listener-kind-unfit" "GP0216" Error ("ResolvedRefs", "InvalidRouteKinds")
        "A listener allows a kind of route that its protocol cannot carry."
        "Remove the kind from `allowedRoutes.kinds`, or change the protocol.";
    BACKEND_MISSING = "backend-missing" "GP0217" Error ("ResolvedRefs", "BackendNotFound")
        "A route sends requests to a Service that is not there."
        "Correct the backendRef or create the Service; requests of this rule are answered 500.";
    BACKEND_KIND_UNKNOWN = "backend-kind-unknown" "GP0218" Error ("ResolvedRefs", "InvalidKind")
        "A route sends requests to something that is not a Service."
        "Use a Service as backend, or an implementation that knows this kind.";
    BACKEND_PORT_MISSING = "backend-port-missing" "GP0219" Warning ("", "")
        "A route sends requests to a port that the Service does not have."
        "Use one of the Service's ports.";
    LISTENER_SET_PARENT_MISSING = "listener-set-parent-missing" "GP0220" Error ("", "")
        "A ListenerSet wants to join a Gateway that is not there."
        "Correct `spec.parentRef`, or create the Gateway.";
    LISTENER_SET_NOT_ATTACHED = "listener-set-not-attached" "GP0221" Error ("Accepted", "NotAllowedByListeners")
        "A route attaches to a ListenerSet that is not part of any Gateway."
        "Have the Gateway admit the ListenerSet first.";
    CA_CERTIFICATE_UNUSABLE = "ca-certificate-unusable" "GP0222" Error ("ResolvedRefs", "InvalidCACertificateRef")
        "A CA certificate for client certificates is missing or unusable."
        "Name a ConfigMap with a PEM certificate in `ca.crt`.";
    LISTENER_REFUSED = "listener-refused" "GP0223" Error ("Accepted", "NotAllowedByListeners")
        "A route attaches to a listener that is itself not accepted, so nothing reaches it."
        "Correct the listener first; its own diagnostic says how.";
    INVALID_PARAMETERS = "invalid-parameters" "GP0224" Error ("Accepted", "InvalidParameters")
        "A Gateway of Gatepost's own class has a `parametersRef`, and none is supported."
        "Remove `spec.infrastructure.parametersRef`.";
    LISTENER_SET_NO_LISTENERS = "listener-set-no-listeners" "GP0225" Error ("Accepted", "ListenersNotValid")
        "None of a ListenerSet's listeners is valid."
        "Correct the listeners; each has its own diagnostic.";
    FILTER_UNSUPPORTED = "filter-unsupported" "GP0226" Warning ("", "")
        "A route or backend has a filter that Gatepost cannot carry out; a filter is never skipped, so its requests are answered 500."
        "Nothing to do if the Gateway implementation knows the filter; otherwise remove it or correct its type.";
    BACKEND_WEIGHTS_ZERO = "backend-weights-zero" "GP0227" Warning ("", "")
        "Every backend of a rule has weight 0, so its requests are answered 500."
        "Give at least one backendRef of the rule a weight above 0.";
    REDIRECT_UNSERVED = "redirect-unserved" "GP0228" Warning ("", "")
        "A redirect points to a scheme, port or path at which no listener or route answers."
        "Correct `requestRedirect`, or attach a route to a listener that serves the target.";
    STATUS_MISSING = "status-missing" "GP0230" Warning unknown ("", "")
        "The Gateway implementation has not said anything about an attachment yet."
        "Wait, or find out whether the implementation runs; nothing is published or deleted until it speaks.";
    STATUS_REFUSED = "status-refused" "GP0231" Warning unknown ("", "")
        "The Gateway implementation refuses an attachment."
        "Read the implementation's message; nothing is published or deleted meanwhile.";
    STATUS_DISAGREES = "status-disagrees" "GP0232" Warning unknown ("", "")
        "The Gateway implementation and the rules of the Gateway API come to different answers."
        "Compare the two reasons; one of them has a bug or a stale view.";

    STATUS_LIST_FULL = "status-list-full" "GP0233" Warning ("", "")
        "A status list is full with what others wrote, so there is no room for ours."
        "Have a controller that no longer runs remove its entries; nothing of others is ever dropped.";

    // GP03: contested.
    LISTENER_HOSTNAME_CONFLICT = "listener-hostname-conflict" "GP0301" Error ("Conflicted", "HostnameConflict")
        "Two listeners claim the same port, protocol and hostname."
        "Give one of them another hostname or port; across objects the older keeps the name.";
    LISTENER_PROTOCOL_CONFLICT = "listener-protocol-conflict" "GP0302" Error ("Conflicted", "ProtocolConflict")
        "Two listeners claim the same port for protocols that cannot share it."
        "Move one of them to another port; across objects the older keeps the port.";
    HOSTNAME_NOT_GRANTED = "hostname-not-granted" "GP0303" Warning ("", "")
        "No HostnameGrant lets the namespace have the hostname, so it gets no records or certificates for it."
        "Use a hostname that is granted to the namespace, or ask the administrators to add the namespace to the HostnameGrant.";
    HOSTNAME_HELD = "hostname-held" "GP0304" Warning ("", "")
        "Another namespace holds the hostname, so this object gets no records or certificates for it."
        "Use another hostname, attach to the Gateway that the holder's Routes attach to, or ask the administrators for a HostnameGrant.";
    GRANTS_CONFLICT = "grants-conflict" "GP0305" Warning ("", "")
        "Two HostnameGrants list the same hostname; the older one decides."
        "Remove the hostname from one of them, or list all its namespaces in one HostnameGrant.";
    OVERLAPPING_TLS = "overlapping-tls" "GP0306" Info ("OverlappingTLSConfig", "OverlappingHostnames")
        "Two TLS listeners of one port overlap, so that a browser may reuse a connection for the wrong one."
        "Give overlapping listeners certificates that do not overlap, or answer 421 for misdirected requests.";
    ROUTE_LOSES_ALL = "route-loses-all" "GP0307" Warning ("", "")
        "Other routes take all requests or connections that a route asks for, so it gets none."
        "Attach to another listener, change hostnames or matches, or remove the other route.";
    MATCH_CONTESTED = "match-contested" "GP0308" Warning ("", "")
        "Two routes have the same hostname and match at one listener; the older one gets the requests."
        "Change hostname or match of one of them, or put the backends into one rule with weights.";
    ROUTE_KINDS_SHARE_HOSTNAME = "route-kinds-share-hostname" "GP0309" Warning ("", "")
        "An HTTPRoute and a GRPCRoute have the same hostname at one listener, which an implementation may refuse."
        "Give each kind a hostname of its own.";
    POLICY_CONFLICTED = "policy-conflicted" "GP0310" Error ("Accepted", "Conflicted")
        "Two policies of one kind have the same target; the older one governs."
        "Remove one of them, or give it a section of its own.";
    POLICY_OVERRIDDEN = "policy-overridden" "GP0311" Info ("", "")
        "Every listener that a policy is about has a closer policy, so it decides nothing."
        "Nothing to do; it governs again when a closer policy goes.";
    POLICY_TARGET_MISSING = "policy-target-missing" "GP0312" Error ("Accepted", "TargetNotFound")
        "A policy is about an object or a listener that is not there, or that is not looked after here."
        "Correct `spec.targetRef`; a policy and its target share a namespace.";
    POLICY_INVALID = "policy-invalid" "GP0313" Error unknown ("Accepted", "Invalid")
        "A policy has a value that cannot be used, so nothing on its listeners is created, changed or deleted."
        "Correct the field that the message names.";
    NO_POLICY = "no-policy" "GP0314" Info ("", "")
        "Hostnames are published only under a DNSPolicy, and none governs the listener."
        "Create a DNSPolicy for the Gateway or ListenerSet, or publish everything with `--publish all`.";
    WILDCARD_NOT_ALLOWED = "wildcard-not-allowed" "GP0315" Info ("", "")
        "A hostname is a wildcard, and the policy that governs the listener does not allow wildcards."
        "Name precise hostnames on the route, or set `allowWildcardHosts: true` on the policy.";
    PROVIDER_NOT_FOUND = "provider-not-found" "GP0316" Error unknown ("Accepted", "ProviderNotFound")
        "A DNSPolicy names a provider that does not exist, so nothing on its listeners is created, changed or deleted."
        "Name one of the providers that the message lists; without `spec.providerRef` the first whose zones contain a name publishes it, which may be a public one.";

    // GP04: DNS.
    ZONE_NOT_SERVED = "zone-not-served" "GP0401" Warning ("", "")
        "A name belongs to no zone that is served, or the zone hands it over to other servers."
        "Add its zone to the provider's settings, or leave the name to whoever serves its zone.";
    RECORD_OWNED_BY_OTHER = "record-owned-by-other" "GP0402" Warning ("", "")
        "A name has records that another owner id claims, so they are left alone."
        "Let the other owner give the name up, or take its records over with `--migrate-from-txt-owner`.";
    RECORD_UNMANAGED = "record-unmanaged" "GP0403" Warning ("", "")
        "A name has records that nobody claims, so they are left alone."
        "Remove them by hand, or have them taken over with `--adopt NAME`.";
    TYPE_CLASH = "type-clash" "GP0404" Warning ("", "")
        "A name would have a CNAME beside other records, which DNS does not allow."
        "Give the Gateways of this name addresses of one kind, or let only one of them serve it.";
    SEVERAL_CNAME_TARGETS = "several-cname-targets" "GP0405" Warning ("", "")
        "A name would be a CNAME for two other names, which DNS does not allow."
        "Keep one hostname address or target for this name.";
    GATEWAY_WITHOUT_ADDRESS = "gateway-without-address" "GP0406" Warning unknown ("", "")
        "A Gateway has no address, so nothing can be published for its hostnames."
        "Wait for `status.addresses`, set `spec.addresses`, or give `--gateway-address NAMESPACE/NAME=VALUE`.";
    TARGET_NOT_PERMITTED = "target-not-permitted" "GP0407" Warning ("", "")
        "A target points to the host that resolves it, its link, or the metadata service of a cloud."
        "Name an address that clients can reach; `--allow-inward-targets` publishes such targets of annotations, too.";
    ANNOTATION_INVALID = "annotation-invalid" "GP0412" Warning ("", "")
        "An annotation has a value that means nothing, so it is ignored."
        "Write one of the values that the message names, or remove the annotation.";
    ANNOTATION_PREFIXES_DISAGREE = "annotation-prefixes-disagree" "GP0413" Warning ("", "")
        "An annotation has different values under the two prefixes; the newer prefix counts."
        "Remove the annotation under `external-dns.alpha.kubernetes.io/`, or make both the same.";
    TEMPLATE_FAILED = "template-failed" "GP0414" Error ("", "")
        "The hostname template fails on a route, so it adds no hostname there."
        "Test for the label or field in the template (`if hasKey`), or give the route what the template uses.";
    TARGET_INVALID = "target-invalid" "GP0415" Warning ("", "")
        "A target is neither an IP address nor a hostname."
        "Write addresses or hostnames, joined by single commas.";
    NO_NAME = "no-name" "GP0416" Warning ("", "")
        "Neither a route nor its listener names a hostname, so there is no name to publish."
        "Set `hostnames` on the route or `hostname` on the listener.";
    CNAME_NOT_POSSIBLE = "cname-not-possible" "GP0417" Error ("", "")
        "The Gateway has a hostname address, and no CNAME may stand at this name."
        "Give `--resolve-targets` to publish the addresses behind it, or use a provider with alias records.";
    CLUSTER_ADDRESS = "cluster-address" "GP0418" Warning ("", "")
        "An address can only be reached inside the cluster, so it is not published."
        "Nothing to do, unless clients resolve this name inside the cluster.";
    MIXED_ADDRESSES = "mixed-addresses" "GP0419" Warning ("", "")
        "A Gateway has IP and hostname addresses; only the IP addresses are published."
        "Remove one of the two kinds.";
    NOT_SELECTED = "not-selected" "GP0420" Info ("", "")
        "The settings leave out an object that a route depends on."
        "Change the flag that the message names, if this was not meant.";
    DOMAIN_NOT_SELECTED = "domain-not-selected" "GP0421" Info ("", "")
        "A name is outside the domains that the settings name."
        "Add its domain to `--domain-filter`, or take it out of `--exclude-domains`.";
    ADDRESS_EXCLUDED = "address-excluded" "GP0422" Warning ("", "")
        "The policy excludes every address that a hostname would have, so it gets no record."
        "Take an address out of `excludeAddresses`, or give the Gateway another one.";
    OWNER_CONFLICT = "owner-twin" "GP0423" Error ("", "")
        "Another instance writes records under the same owner id, so nothing is written."
        "Give one of the two another `--txt-owner-id`; if the other one is gone, take its records over with `--replace-instance`.";
    MARKER_NOT_POSSIBLE = "marker-not-possible" "GP0424" Error ("", "")
        "The TXT record that would mark a record as ours cannot stand where it should, so neither is written."
        "Change the flag that the message names; `--txt-prefix %{record_type}-owner.` fits every name, the top of a zone included.";
    ZONE_UNREADABLE = "zone-unreadable" "GP0425" Warning ("", "")
        "A zone could not be read to its end, so nothing in it is changed."
        "Fix what the message names; the other zones are not affected.";
    TYPE_NOT_MANAGED = "type-not-managed" "GP0426" Info ("", "")
        "The settings leave out a type of record that a name would have."
        "Add the type to `--managed-record-types`, or take it out of `--exclude-record-types`.";
    TARGET_UNRESOLVED = "target-unresolved" "GP0427" Warning unknown ("", "")
        "The addresses behind a hostname address could not be found out, so what is published for its names is kept."
        "See to it that the resolver of the message answers for the hostname, or name another with `--resolver`.";
    RECORD_PUT_BACK = "record-put-back" "GP0428" Warning ("", "")
        "A record was written and still reads as before, so it is not written again for an hour."
        "Ask for what the provider keeps (the message shows it), or find out who else writes the record.";
    CNAME_LOOP = "cname-loop" "GP0429" Error ("", "")
        "A CNAME record would lead back to its own name, so the name gets no record."
        "Give the Gateway an IP address, or a hostname address that none of its routes serves.";
    ADDRESS_TYPE_UNSUPPORTED = "address-type-unsupported" "GP0430" Warning ("", "")
        "A Gateway has an address of a type that cannot be published in DNS."
        "Nothing to do if the Gateway has other addresses; else give it one with `--gateway-address NAMESPACE/NAME=VALUE`.";
    ANNOTATION_WITHOUT_EFFECT = "annotation-without-effect" "GP0431" Warning ("", "")
        "An annotation of external-dns is on a Gateway or ListenerSet, where it has no effect."
        "Set the annotation on the routes. A DNSPolicy sets the TTL of all names of a Gateway.";
    ADDRESS_UNHEALTHY = "address-unhealthy" "GP0432" Warning ("SubResourcesHealthy", "SomeUnhealthy")
        "The probes of a health check fail at an address, so it is not published for a hostname."
        "See what answers at the address, as the message says; it is published again when its probes succeed.";
    ALL_ADDRESSES_UNHEALTHY = "all-addresses-unhealthy" "GP0433" Error ("SubResourcesHealthy", "AllUnhealthy")
        "The probes of a health check fail at every address of a hostname, so what was published last stays."
        "See what answers at the addresses, or whether `healthCheck` of the policy asks for the right port and path.";
    HEALTH_CHECK_WITHOUT_NAMES = "health-check-without-names" "GP0434" Warning ("", "")
        "A policy has a health check, and every hostname that it governs is a wildcard, which is never probed."
        "Name precise hostnames on the routes, or remove `healthCheck`.";
    HEALTH_CHECK_PORT_UNSERVED = "health-check-port-unserved" "GP0435" Warning ("", "")
        "A health check probes a port at which no listener of the policy's target answers."
        "Correct `healthCheck.port`, unless something beside the Gateway answers there.";
    HEALTH_CHECK_UNCOVERED = "health-check-uncovered" "GP0436" Warning ("", "")
        "A health check speaks HTTPS, and the certificates of the listeners do not cover a hostname, so its probes would fail."
        "Have a certificate with the hostname issued, correct `certificateRefs`, or set `insecureSkipVerify`.";

    // GP05: held by a safety rule.
    TOO_MANY_DELETES = "too-many-deletes" "GP0501" Error ("", "")
        "A plan would delete more than 30 % of our records in a zone, and at least ten, so none is deleted."
        "Look at what would go; confirm with `--confirm-deletes` if it is meant.";
    SOURCE_UNKNOWN = "source-unknown" "GP0502" Warning ("", "")
        "It is not known whether a name ought to be gone, so its records are kept."
        "Fix what the message names; the records follow as soon as it is known.";
    SOURCE_EMPTY = "source-empty" "GP0503" Error ("", "")
        "Nothing asks for records any more, or no object of a kind does, so none is deleted."
        "Check filters and sources; confirm with `--confirm-deletes` if it is meant.";
    APEX_GUARDED = "apex-guarded" "GP0504" Error ("", "")
        "A record at the top of a zone would be deleted, so it is kept."
        "Confirm with `--confirm-deletes` if it is meant.";
    PLAN_STALE = "plan-stale" "GP0505" Error ("", "")
        "The plan that was asked for is not the plan of this moment, so nothing is written."
        "Look at the new plan and ask for its digest.";
    WILDCARD_GUARDED = "wildcard-guarded" "GP0507" Error ("", "")
        "A wildcard would be deleted while names that it answers for would have nothing else, so it is kept."
        "Fix what keeps those names from being published; confirm with `--confirm-deletes` if it is meant.";
    REPLACEMENT_PENDING = "replacement-pending" "GP0508" Info ("", "")
        "A record is kept until what replaces it has been seen, in its zone or at another provider."
        "It goes when what replaces it is there; `gatepost plan` says what holds that up.";
    OWNERSHIP_UNPROVEN = "ownership-unproven" "GP0509" Error ("", "")
        "A record carries our owner id but was not written by this instance, so it is not deleted."
        "Confirm with `--confirm-deletes` if it is ours.";
    KEPT_BY_POLICY = "kept-by-policy" "GP0510" Info ("", "")
        "The policy of the settings does not allow a change that would otherwise be made."
        "Set `--policy sync` to have it made.";
    LAST_ADDRESS = "last-address" "GP0511" Warning ("", "")
        "A name would be left without any address, so its records are kept."
        "Give its Gateway an address, or take the hostname off the routes.";
    ADDRESSES_INWARD = "addresses-inward" "GP0512" Error ("", "")
        "A name with addresses that others reach would get only ones that lead whoever asks to itself, so they are kept."
        "Give its Gateway the address that it had; confirm with `--confirm-deletes` if it is meant.";

    // GP06: certificates.
    CERTIFICATE_CANNOT_COVER = "certificate-cannot-cover" "GP0601" Warning ("", "")
        "A listener that ends TLS serves a hostname that no permitted certificate covers."
        "Name precise hostnames on the route, or allow wildcards with a TLSPolicy.";
    ISSUER_UNREACHABLE = "issuer-unreachable" "GP0605" Warning ("", "")
        "The issuer of certificates does not answer; what serves keeps serving."
        "See that the host of the message can be reached from here; it is tried again by itself.";
    CERTIFICATE_ORDER_FAILED = "certificate-order-failed" "GP0606" Error ("", "")
        "An order for a certificate failed at its issuer; what serves keeps serving."
        "Fix what the issuer's message names; the order is retried automatically, after longer and longer waits.";
    ISSUER_RATE_LIMITED = "issuer-rate-limited" "GP0607" Warning ("", "")
        "The issuer asks for fewer orders, or its budget for this week is used up."
        "Wait until the time of the message; put hostnames of one listener into one Secret to need fewer orders.";
    CERTIFICATE_REJECTED = "certificate-rejected" "GP0608" Error ("", "")
        "What the issuer sent is not what was ordered, so it is not used; what serves keeps serving."
        "Tell the issuer what the message says; check the clock of this machine if it is about dates.";
    CERTIFICATE_SECRET_ELSEWHERE = "certificate-secret-elsewhere" "GP0610" Info ("", "")
        "A listener takes its certificate from a Secret in another namespace, which is never filled from here."
        "Have the owner of that namespace fill it, or name a Secret beside the listener.";
    CERTIFICATE_TOO_MANY_NAMES = "certificate-too-many-names" "GP0611" Error ("", "")
        "A certificate would have more names than its issuer takes; the names of the youngest routes are left out."
        "Spread the listeners over several Secrets, or allow a wildcard with a TLSPolicy.";
    CERTIFICATE_ISSUERS_DIFFER = "certificate-issuers-differ" "GP0612" Warning ("", "")
        "Listeners that share a Secret are governed by TLSPolicies with different issuers; the oldest policy decides."
        "Give the listeners Secrets of their own, or make the issuers the same.";
    CERTIFICATE_PENDING = "certificate-pending" "GP0613" Info ("", "")
        "A hostname waits for its certificate."
        "Nothing to do; `explain` shows how far the order is.";
    CERTIFICATE_NOT_STORED = "certificate-not-stored" "GP0614" Error ("", "")
        "A certificate or what is remembered about it could not be read or written."
        "Give this program the right to write where the message says.";
    CHALLENGE_NOT_ANSWERED = "challenge-not-answered" "GP0615" Warning ("", "")
        "A TXT value that the issuer wants to see is not answered by all servers yet."
        "See why the zone does not answer; the order waits.";
    ISSUER_UNUSABLE = "issuer-unusable" "GP0616" Error ("", "")
        "The settings of an issuer cannot be used."
        "Change the flag or field that the message names.";
    CERTIFICATE_FOREIGN = "certificate-foreign" "GP0617" Error ("", "")
        "Somebody else looks after the certificate of a Secret, so it is left alone."
        "Remove the other Certificate, or give the listener a Secret of its own.";

    // GP07: hygiene.
    HOSTNAME_IS_IP = "hostname-is-ip" "GP0701" Error ("", "")
        "A hostname field holds an IP address."
        "Use a DNS name; to serve requests without one, leave the field out.";
    HOSTNAME_NOT_LOWERCASE = "hostname-not-lowercase" "GP0702" Error ("", "")
        "A hostname has upper case letters, which a cluster refuses."
        "Write it in lower case.";
    HOSTNAME_INTERNATIONAL = "hostname-international" "GP0703" Info ("", "")
        "A hostname is an international name in its ASCII form."
        "Nothing to do; check that it reads as you mean it.";
    HOSTNAME_LABEL_TOO_LONG = "hostname-label-too-long" "GP0704" Error ("", "")
        "A label of a hostname has more than 63 characters, which DNS cannot hold."
        "Shorten the label.";
    LISTENER_OPEN_TO_ALL = "listener-open-to-all" "GP0705" Info ("", "")
        "A listener without hostname takes routes from every namespace: anybody may claim any name."
        "Set a hostname, or admit namespaces by selector.";
    HOSTNAME_UNREACHABLE = "hostname-unreachable" "GP0706" Warning ("", "")
        "A more specific listener takes all requests for a hostname, so the route never sees them."
        "Attach the route to the more specific listener too.";
    INVALID_HOSTNAME = "invalid-hostname" "GP0708" Error ("", "")
        "A hostname field holds a text that is not a hostname; it is left out."
        "Write labels of letters, digits and `-`, joined by dots, with `*.` in front for a wildcard.";
    SELECTOR_MISSING = "selector-missing" "GP0709" Warning ("", "")
        "Namespaces are to be admitted by selector, and there is none, so none is admitted."
        "Add a `selector`, or use `from: Same` or `from: All`.";
    HOSTNAME_NOT_COVERED = "hostname-not-covered" "GP0710" Warning ("", "")
        "One hostname of a route has nothing in common with any listener it attaches to, and is ignored."
        "Remove the hostname, or attach to a listener that covers it.";
    HOSTNAME_BROKEN_PUNYCODE = "hostname-broken-punycode" "GP0711" Warning ("", "")
        "A label begins with `xn--` but stands for no international name."
        "Write the international name and let its ASCII form be computed.";
    NAMESPACE_NOT_IN_INPUT = "namespace-not-in-input" "GP0712" Info ("", "")
        "A selector asks for labels of a namespace that is not among the files, so they are taken as absent."
        "Add the Namespace to the files to have its labels checked.";
    ROUTE_WITHOUT_PARENT = "route-without-parent" "GP0713" Warning ("", "")
        "A route names no parent, so nothing reaches it."
        "Add `parentRefs`.";
    PARENT_REPEATED = "parent-repeated" "GP0714" Warning ("", "")
        "Two parentRefs of a route name the same object and section in different words."
        "Remove one of them.";
    SUPPRESSION_INVALID = "suppression-invalid" "GP0715" Warning ("", "")
        "An annotation is to suppress findings, and suppresses none: it names no reason that exists, or does not say why."
        "Write `gatepost.dev/ignore: \"REASON: why\"`, with names such as `hostname-held`; several reasons are joined by commas.";
    ANNOTATION_MISSPELT = "annotation-misspelt" "GP0716" Warning ("", "")
        "An annotation or label is nearly a well-known one, and has no meaning as it is."
        "Correct the key as the message says.";
    GRANT_UNUSED = "grant-unused" "GP0717" Info ("", "")
        "No route that a HostnameGrant admits asks for its hostname."
        "Remove the hostname, unless it is reserved on purpose; check the spelling of hostname and namespaces.";
    HOSTNAME_WITHOUT_GRANT = "hostname-without-grant" "GP0718" Info ("", "")
        "There are HostnameGrants, and none covers the hostname of a route, so any namespace may ask for it."
        "Add the hostname to a HostnameGrant, or withhold such hostnames with `--require-grants`.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_names_are_unique() {
        let codes: Vec<_> = CATALOG.iter().map(|r| r.code).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
        let names: std::collections::BTreeSet<_> = CATALOG.iter().map(|r| r.name).collect();
        assert_eq!(names.len(), CATALOG.len());
    }

    #[test]
    fn what_is_not_known_is_marked() {
        let unknown: Vec<_> = Reason::all().filter(|reason| reason.is_unknown()).collect();
        let expected = [
            KIND_NOT_VISIBLE,
            INVALID_FIELD,
            OBJECT_INCOMPLETE,
            GATEWAY_CLASS_MISSING,
            STATUS_STALE,
            STATUS_MISSING,
            STATUS_REFUSED,
            STATUS_DISAGREES,
            POLICY_INVALID,
            PROVIDER_NOT_FOUND,
            GATEWAY_WITHOUT_ADDRESS,
            TARGET_UNRESOLVED,
        ];
        assert_eq!(unknown, expected);
    }

    #[test]
    fn reasons_are_found_by_name_and_number() {
        assert_eq!(Reason::find("GP0204"), Some(NAMESPACE_NOT_ALLOWED));
        assert_eq!(Reason::find("namespace-not-allowed"), Some(NAMESPACE_NOT_ALLOWED));
        assert_eq!(Reason::find("nonsense"), None);
    }
}
