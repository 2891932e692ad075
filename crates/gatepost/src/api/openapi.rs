//! The OpenAPI document of `/api/v1`: paths and parameters from the table here, shapes from the types of the answers.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::view::api::{
    ActivityView, CertificatesView, ErrorView, HealthView, HeldByView, NameView, NamesView, ObjectView, ObjectsView,
    OverviewView, PlanStepsView, ReasonPageView, ZonesView,
};
use crate::view::flow::FlowView;
use crate::view::route::RouteView;

/// How the shape of an answer is made.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One path.
struct PathRow {
    path: &'static str,
    summary: &'static str,
    parameters: &'static [ParameterRow],
    answer: AnswerShape,
}

/// A parameter of the query.
struct ParameterRow(&'static str, ParameterKind, &'static str);

enum ParameterKind {
    Text,
    /// It may be given several times.
    Texts,
    Number,
    Flag,
    Word(&'static [&'static str]),
    /// A text of a form.
    Form(&'static str),
}

enum AnswerShape {
    Json(SchemaOf),
    /// One of two.
    Either(SchemaOf, SchemaOf),
    Text(&'static str),
    /// Any JSON object.
    Document,
}

use AnswerShape::{Document, Either, Json, Text};
use ParameterKind as Kind;

const OFFSET: ParameterRow = ParameterRow("offset", Kind::Number, "How many to leave out at the beginning");
const LIMIT: ParameterRow = ParameterRow("limit", Kind::Number, "How many at most: 100 unless given, 500 at most");
const SEARCH: ParameterRow = ParameterRow("q", Kind::Text, "A part of a hostname, an object or a reason");
const NAMESPACE: ParameterRow = ParameterRow("namespace", Kind::Text, "A namespace");
const GATEWAY: ParameterRow = ParameterRow("gateway", Kind::Text, "A Gateway, as Gateway/NAMESPACE/NAME");
const ONE_GATEWAY: ParameterRow =
    ParameterRow("gateway", Kind::Form("^([a-z0-9.-]+/[a-z0-9.-]+)?$"), "A Gateway, as NAMESPACE/NAME");
const ZONE: ParameterRow = ParameterRow("zone", Kind::Text, "A zone");
const HEALTH: ParameterRow =
    ParameterRow("health", Kind::Form(HEALTHS), "wrong, held, unknown, foreign or right; several with commas");
const HEALTHS: &str = "^((wrong|held|unknown|foreign|right)(,(wrong|held|unknown|foreign|right))*)?$";
const VERDICT: ParameterRow = ParameterRow("verdict", Kind::Text, "A verdict of `explain`");
const REASON: ParameterRow = ParameterRow("reason", Kind::Text, "A reason by name or number");
const SORT: ParameterRow = ParameterRow("sort", Kind::Word(&["", "health", "name", "zone", "expiry"]), "The order");
const ORDER: ParameterRow = ParameterRow("order", Kind::Word(&["", "up", "down"]), "Its direction");

const PATHS: &[PathRow] = &[
    PathRow {
        path: "/api/v1/overview",
        summary: "Counts by health, and whether everything could be read",
        parameters: &[],
        answer: Json(of::<OverviewView>),
    },
    PathRow {
        path: "/api/v1/names",
        summary: "All names: filtered, sorted and cut",
        parameters: &[SEARCH, NAMESPACE, GATEWAY, ZONE, HEALTH, VERDICT, REASON, SORT, ORDER, OFFSET, LIMIT],
        answer: Json(of::<NamesView>),
    },
    PathRow {
        path: "/api/v1/names.csv",
        summary: "All names as a table",
        parameters: &[SEARCH, NAMESPACE, GATEWAY, ZONE, HEALTH, VERDICT, REASON, SORT, ORDER],
        answer: Text("text/csv"),
    },
    PathRow {
        path: "/api/v1/names/{hostname}",
        summary: "Everything about one name, or only who holds it",
        parameters: &[],
        answer: Either(of::<NameView>, of::<HeldByView>),
    },
    PathRow {
        path: "/api/v1/names/{hostname}/chain.svg",
        summary: "The chains of a name as a picture",
        parameters: &[],
        answer: Text("image/svg+xml"),
    },
    PathRow {
        path: "/api/v1/names/{hostname}/chain.mmd",
        summary: "The chains of a name as a Mermaid flowchart",
        parameters: &[],
        answer: Text("text/vnd.mermaid"),
    },
    PathRow {
        path: "/api/v1/objects",
        summary: "The status that objects should have",
        parameters: &[ParameterRow("kind", Kind::Text, "A kind"), NAMESPACE, SEARCH, OFFSET, LIMIT],
        answer: Json(of::<ObjectsView>),
    },
    PathRow {
        path: "/api/v1/objects/{kind}/{namespace}/{name}",
        summary: "One object: its status, its problems and its names",
        parameters: &[],
        answer: Json(of::<ObjectView>),
    },
    PathRow {
        path: "/api/v1/flow",
        summary: "Classes, Gateways, ListenerSets, listeners and routes as a graph",
        parameters: &[ONE_GATEWAY, NAMESPACE],
        answer: Json(of::<FlowView>),
    },
    PathRow {
        path: "/api/v1/plan",
        summary: "The steps of the last pass, and what is held",
        parameters: &[OFFSET, LIMIT],
        answer: Json(of::<PlanStepsView>),
    },
    PathRow {
        path: "/api/v1/certificates",
        summary: "Secrets with what is planned, held and ordered",
        parameters: &[],
        answer: Json(of::<CertificatesView>),
    },
    PathRow {
        path: "/api/v1/health",
        summary: "What probes found out about each address of a name",
        parameters: &[],
        answer: Json(of::<HealthView>),
    },
    PathRow {
        path: "/api/v1/route",
        summary: "Who serves a request, and why not the others",
        parameters: &[
            ParameterRow("url", Kind::Form("^[a-z]+://[^/]+"), "The URL; required"),
            ParameterRow("method", Kind::Text, "GET unless given"),
            ParameterRow("header", Kind::Texts, "A header, as `Name: value`"),
            ONE_GATEWAY,
            NAMESPACE,
            ParameterRow(
                "port",
                Kind::Form("^([1-9][0-9]{0,4})?$"),
                "The port of the listener, unless it is that of the URL",
            ),
            ParameterRow("sni", Kind::Text, "The name in the TLS handshake, unless it is that of the URL"),
            ParameterRow("grpc", Kind::Flag, "Whether it is a call of gRPC"),
        ],
        answer: Json(of::<RouteView>),
    },
    PathRow {
        path: "/api/v1/zones",
        summary: "The provider and the zones that the last comparison read",
        parameters: &[],
        answer: Json(of::<ZonesView>),
    },
    PathRow {
        path: "/api/v1/activity",
        summary: "What was written, failed, held or released lately",
        parameters: &[
            ParameterRow("since", Kind::Number, "Only from this number on"),
            ParameterRow("name", Kind::Text, "Only about this name"),
        ],
        answer: Json(of::<ActivityView>),
    },
    PathRow {
        path: "/api/v1/reasons/{reason}",
        summary: "What a reason means",
        parameters: &[],
        answer: Json(of::<ReasonPageView>),
    },
    PathRow {
        path: "/api/v1/events",
        summary: "Server-sent events: `changed` at once and after every pass, `alive` in between",
        parameters: &[],
        answer: Text("text/event-stream"),
    },
    PathRow { path: "/api/v1/openapi.json", summary: "This document", parameters: &[], answer: Document },
];

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The document.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    let error = of::<ErrorView>(&mut generator);
    let paths: Map<String, Value> =
        PATHS.iter().map(|row| (row.path.to_owned(), json!({"get": row.operation(&error, &mut generator)}))).collect();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Gatepost",
            "version": "1",
            "description": "Read-only answers of `gatepost serve` and `gatepost controller`. Fields are only added. Times are seconds since 1970.",
            "license": {"name": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {
                "type": "http", "scheme": "bearer", "description": "A token of the cluster, with --page cluster",
            }},
        },
        "security": [{}, {"token": []}],
    })
}

impl PathRow {
    fn operation(&self, error: &Schema, generator: &mut SchemaGenerator) -> Value {
        let (kind, schema) = match &self.answer {
            Json(of) => ("application/json", of(generator).to_value()),
            Either(one, other) => {
                let shapes = [one(generator), other(generator)];
                ("application/json", json!({"anyOf": shapes}))
            }
            Text(kind) => (*kind, json!({"type": "string"})),
            Document => ("application/json", json!({"type": "object"})),
        };
        let refusal = |why: &str| json!({"description": why, "content": {"application/json": {"schema": error}}});
        let in_path = self.path.split('{').skip(1).filter_map(|part| part.split('}').next());
        let in_path = in_path.map(
            |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}}),
        );
        let parameters: Vec<Value> = in_path.chain(self.parameters.iter().map(ParameterRow::value)).collect();
        json!({
            "summary": self.summary,
            "parameters": parameters,
            "responses": {
                "200": {"description": "The answer", "content": {kind: {"schema": schema}}},
                "304": {"description": "The reader has it already (If-None-Match)"},
                "400": refusal("The request is not understood"),
                "401": refusal("A token of the cluster is needed"),
                "403": refusal("It may not be seen"),
                "404": refusal("It is not there"),
                "414": refusal("The query is too long"),
                "503": refusal("Nothing is known yet"),
            },
        })
    }
}

impl ParameterRow {
    fn value(&self) -> Value {
        let schema = match self.1 {
            Kind::Text => json!({"type": "string"}),
            Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Kind::Number => json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
            Kind::Form(pattern) => json!({"type": "string", "pattern": pattern}),
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Word(words) => json!({"type": "string", "enum": words}),
        };
        let is_required = self.2.ends_with("; required");
        json!({"name": self.0, "in": "query", "required": is_required, "description": self.2, "schema": schema})
    }
}
