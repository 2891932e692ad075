// Classes, Gateways, ListenerSets, listeners and routes as a graph, in fixed columns from left to right.
import { useState } from "preact/hooks";
import { type Flow, type FlowEdge, type FlowNode, type Live, type Names, path, useAnswer } from "../api";
import { Problem, Reason } from "../parts";
import { change, href } from "../place";

const COLUMNS = ["Class", "Gateway", "ListenerSet", "Listener", "Route"];
const BOX = { width: 200, height: 46 };
const STEP = { x: 252, y: 60 };
const TOP = 34;

function columnOf(node: FlowNode): number {
  if (node.kind === "GatewayClass") return 0;
  if (node.kind === "Gateway") return 1;
  if (node.kind.endsWith("ListenerSet")) return 2;
  return node.kind === "Listener" ? 3 : 4;
}

interface Placed extends FlowNode {
  x: number;
  y: number;
}

/** Every node in its column, beside what it hangs on; ListenerSets beside their listeners, so that no line runs behind one. */
function placed(flow: Flow): { nodes: Map<string, Placed>; rows: number } {
  const nodes = new Map<string, Placed>();
  let rows = 0;
  const above = new Map<string, string[]>();
  const below = new Map<string, string[]>();
  for (const edge of flow.edges) {
    above.set(edge.to, [...(above.get(edge.to) ?? []), edge.from]);
    below.set(edge.from, [...(below.get(edge.from) ?? []), edge.to]);
  }
  const isSet = (id: string) => flow.nodes.some((node) => node.id === id && columnOf(node) === 2);
  const mean = (ids: string[] | undefined) => {
    const heights = (ids ?? []).map((id) => nodes.get(id)?.y).filter((y) => y !== undefined);
    return heights.length ? heights.reduce((sum, y) => sum + y, 0) / heights.length : undefined;
  };
  /** Listeners of a Gateway's own come before those of its ListenerSets. */
  const rank = (node: FlowNode): [number, number] => {
    const sets = (above.get(node.id) ?? []).filter(isSet);
    const from = sets.length ? sets.flatMap((id) => above.get(id) ?? []) : above.get(node.id);
    return [mean(from) ?? 0, sets.length];
  };
  for (const column of [0, 1, 3, 2, 4]) {
    const own = flow.nodes.filter((node) => columnOf(node) === column);
    const at = (node: FlowNode): [number, number] =>
      column === 3 ? rank(node) : [(column === 2 ? mean(below.get(node.id)) : undefined) ?? mean(above.get(node.id)) ?? 0, 0];
    const sorted = own.map((node) => ({ node, at: at(node) }));
    sorted.sort((a, b) => a.at[0] - b.at[0] || a.at[1] - b.at[1] || a.node.id.localeCompare(b.node.id));
    let next = TOP;
    for (const { node, at } of sorted) {
      const y = Math.max(next, at[0]);
      nodes.set(node.id, { ...node, x: column * STEP.x, y });
      next = y + STEP.y;
    }
    rows = Math.max(rows, next);
  }
  return { nodes, rows };
}

/** Everything on the ways through a node, up and down. */
function ways(edges: FlowEdge[], id: string): Set<string> {
  const found = new Set([id]);
  for (const [from, to] of [["from", "to"], ["to", "from"]] as const) {
    const open = [id];
    for (let at = open.pop(); at; at = open.pop()) {
      for (const edge of edges) {
        if (edge[from] === at && !found.has(edge[to])) {
          found.add(edge[to]);
          open.push(edge[to]);
        }
      }
    }
  }
  return found;
}

const STATES: Record<FlowEdge["state"], string> = { works: "works", broken: "broken", "not-permitted": "not permitted" };

function short(text: string): string {
  return text.length > 28 ? `${text.slice(0, 27)}…` : text;
}

function NodeBox({ node, faded, chosen }: { node: Placed; faded: boolean; chosen: boolean }) {
  const words = node.holds ? "holds" : `broken${node.reason ? `: ${node.reason}` : ""}`;
  const broken = node.broken ? `, ${node.broken} not attached` : "";
  const mark = `${node.holds ? "✓" : "✗"} ${short(node.name)}`;
  const detail = short(node.broken ? `${node.broken} not attached` : (node.detail ?? node.reason ?? node.kind));
  return (
    <a
      href={href("flow", undefined, { ...Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] ?? "")), node: chosen ? "" : node.id })}
      class={`node ${node.holds ? "holds" : "broken"} ${faded ? "faded" : ""}`}
      aria-current={chosen ? "true" : undefined}
    >
      <title>{`${node.kind} ${node.name}, ${words}${broken}${node.detail ? `, ${node.detail}` : ""}`}</title>
      <rect x={node.x} y={node.y} width={BOX.width} height={BOX.height} rx={8} />
      <text x={node.x + 10} y={node.y + 19} class="name">
        {mark}
      </text>
      <text x={node.x + 10} y={node.y + 36} class="detail">
        {detail}
      </text>
    </a>
  );
}

function Graph({ flow, chosen }: { flow: Flow; chosen: string | undefined }) {
  const { nodes, rows } = placed(flow);
  const lit = chosen && nodes.has(chosen) ? ways(flow.edges, chosen) : undefined;
  const width = STEP.x * (COLUMNS.length - 1) + BOX.width + 4;
  const isFaded = (...ids: string[]) => lit !== undefined && !ids.every((id) => lit.has(id));
  return (
    <div class="flow" role="region" aria-label="Graph" tabIndex={0}>
      <svg width={width} height={rows + 4} viewBox={`-2 0 ${width} ${rows + 4}`} role="group" aria-label="From classes to routes">
        {COLUMNS.map((title, index) => (
          <text x={index * STEP.x} y={16} class="column">
            {title}
          </text>
        ))}
        {flow.edges.map((edge) => {
          const [from, to] = [nodes.get(edge.from), nodes.get(edge.to)];
          if (!from || !to) return null;
          const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x, to.y + BOX.height / 2];
          const bend = Math.max(30, (x2 - x1) / 2);
          return (
            <path
              class={`edge ${edge.state} ${isFaded(edge.from, edge.to) ? "faded" : ""}`}
              d={`M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`}
            />
          );
        })}
        {[...nodes.values()].map((node) => (
          <NodeBox key={node.id} node={node} faded={isFaded(node.id)} chosen={node.id === chosen} />
        ))}
      </svg>
    </div>
  );
}

/** The node that was chosen, with what hangs on it and what it hangs on. */
function Chosen({ flow, id }: { flow: Flow; id: string }) {
  const node = flow.nodes.find((one) => one.id === id);
  if (!node) return null;
  const edges = flow.edges.filter((edge) => edge.to === id || edge.from === id);
  const query = node.kind === "Gateway" ? { gateway: node.id } : { q: node.kind === "Routes" ? node.id.replace(/\/…$/, "") : node.id };
  return (
    <section aria-live="polite">
      <h2>{node.id}</h2>
      <p>
        {node.holds ? "✓ holds" : "✗ broken"} {node.detail} {node.reason && <Reason reason={node.reason} />}{" "}
        {node.kind !== "GatewayClass" && <a href={href("names", undefined, query)}>its names</a>}
      </p>
      <ul>
        {edges.slice(0, 50).map((edge) => (
          <li>
            {edge.from === id ? `→ ${edge.to}` : `← ${edge.from}`}: {STATES[edge.state]} {edge.reason && <Reason reason={edge.reason} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

export function FlowView({ live, query }: { live: Live; query: Record<string, string> }) {
  const of = path("flow", { gateway: query.gateway, namespace: query.namespace });
  const { data, error } = useAnswer<Flow>(of, live.version);
  const { data: names } = useAnswer<Names>("names?limit=1", live.version);
  const [isOnlyBroken, setOnlyBroken] = useState(false);
  const choice = (name: "gateway" | "namespace", label: string, values: string[]) => (
    <label>
      <span>{label}</span>
      <select value={query[name] ?? ""} onChange={(event) => change({ [name]: event.currentTarget.value, node: "" })}>
        <option value="">all</option>
        {values.map((value) => (
          <option value={value} selected={value === query[name]}>
            {value.replace(/^Gateway\//, "")}
          </option>
        ))}
      </select>
    </label>
  );
  const shown = data && isOnlyBroken ? onlyBroken(data) : data;
  return (
    <>
      <h1>Flow</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        {choice("gateway", "Gateway", names?.facets.gateways ?? [])}
        {choice("namespace", "Namespace of routes", names?.facets.namespaces ?? [])}
        <button type="button" aria-pressed={isOnlyBroken} onClick={() => setOnlyBroken(!isOnlyBroken)}>
          ✗ Only what is broken
        </button>
      </form>
      <Problem error={error} />
      {shown && (
        <>
          <p class="matching" role="status">
            {shown.routes} routes. Lines: solid works, dashed is broken, dotted is not permitted.
            {shown.isCollapsed && " There are more than 200 nodes, so the routes of a listener are one node: choose a Gateway or a namespace to see them."}
            {shown.leftOut > 0 && ` ${shown.leftOut} nodes are left out.`}
          </p>
          {shown.nodes.length === 0 ? <p>Nothing is broken here.</p> : <Graph flow={shown} chosen={query.node} />}
          {query.node && <Chosen flow={shown} id={query.node} />}
        </>
      )}
    </>
  );
}

/** Broken nodes and edges with everything above them. */
function onlyBroken(flow: Flow): Flow {
  const broken = flow.edges.filter((edge) => edge.state !== "works").flatMap((edge) => [edge.from, edge.to]);
  const kept = new Set([...broken, ...flow.nodes.filter((node) => !node.holds).map((node) => node.id)]);
  for (let size = -1; size !== kept.size; ) {
    size = kept.size;
    for (const edge of flow.edges) if (kept.has(edge.to)) kept.add(edge.from);
  }
  return {
    ...flow,
    nodes: flow.nodes.filter((node) => kept.has(node.id)),
    edges: flow.edges.filter((edge) => kept.has(edge.from) && kept.has(edge.to)),
  };
}
