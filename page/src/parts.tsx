// Small parts that several views show.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Diagnostic, Health } from "./api";
import { href } from "./place";
import { reportAnswers } from "./report";
import { headers, token } from "./token";

const MARKS: Record<Health, string> = { right: "✓", wrong: "✗", held: "‖", foreign: "◇", unknown: "?" };
const WORDS: Record<Health, string> = { right: "Right", wrong: "Wrong", held: "Held", foreign: "Foreign", unknown: "Unknown" };

/** A health as mark and word; the colour only repeats them. */
export function HealthMark({ health, count }: { health: Health; count?: number }) {
  return (
    <span class={`health ${health}`}>
      <span aria-hidden="true">{MARKS[health]}</span> {WORDS[health]}
      {count === undefined ? null : <b> {count}</b>}
    </span>
  );
}

export const word = (health: Health) => WORDS[health];

export function NameLink({ name }: { name: string }) {
  return <a href={href("name", name)}>{name}</a>;
}

export function Reason({ reason, code }: { reason: string; code?: string }) {
  return (
    <a class="reason" href={href("reason", reason)} title="What is this?">
      {code ? `${code} ` : ""}
      {reason}
    </a>
  );
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return (
    <button type="button" onClick={copy}>
      {isDone ? "Copied" : label}
    </button>
  );
}

/** What is wrong, which object and field, what to do. */
export function Cause({ cause }: { cause: Diagnostic }) {
  return (
    <div class={`cause ${cause.severity}`}>
      <p>
        {cause.object && (
          <b>
            {cause.object} {cause.field && <code>{cause.field}</code>}
          </b>
        )}{" "}
        <Reason reason={cause.reason} code={cause.code} />
      </p>
      <p>{cause.message}</p>
      {cause.related?.map((related) => (
        <p class="related">
          see {related.object} {related.field && <code>{related.field}</code>}: {related.note}
        </p>
      ))}
      <p>
        <b>What to do:</b> {cause.help}
      </p>
      {cause.fix && (
        <p class="fix">
          <code>{cause.fix}</code> <Copy text={cause.fix} label="Copy the command" />
        </p>
      )}
    </div>
  );
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** Why something could not be read. What the same view still shows from before is grey: the style sheet looks for it. */
export function Problem({ error }: { error: string | undefined }) {
  return error ? (
    <p class="problem unread" role="alert">
      {error}
    </p>
  ) : null;
}

export function ago(seconds: number): string {
  const units: [number, string][] = [
    [86_400, "d"],
    [3600, "h"],
    [60, "min"],
  ];
  const unit = units.find(([size]) => seconds >= size * 2);
  return unit ? `${Math.floor(seconds / unit[0])} ${unit[1]} ago` : `${Math.max(0, Math.floor(seconds))} s ago`;
}

export function time(seconds: number): string {
  return new Date(seconds * 1000).toLocaleString();
}

/** When a certificate ends, in days. */
export function Expiry({ at }: { at: number }) {
  const days = Math.floor((at - Date.now() / 1000) / 86_400);
  const text = days < 0 ? "ended" : `${days} days`;
  return (
    <span class={days < 14 ? "soon" : ""} title={time(at)}>
      {text}
    </span>
  );
}

/** A link to an answer of the server. Where a token is needed the page fetches it, because a link sends none. */
export function ApiLink({ path, file, children }: { path: string; file: string; children: ComponentChildren }) {
  if (reportAnswers()) return null;
  const url = `api/v1/${path}`;
  const fetched = async (event: MouseEvent) => {
    if (!token()) return;
    event.preventDefault();
    const response = await fetch(url, { headers: headers() });
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(await response.blob()), download: file });
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <a href={url} onClick={fetched}>
      {children}
    </a>
  );
}
