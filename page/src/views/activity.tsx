// What was written, failed, held or released lately, with its cause.
import { type ActivityEntry, type Live, useAnswer } from "../api";
import { NameLink, Problem, Reason, time } from "../parts";

const MARKS: Record<string, string> = { written: "✓", failed: "✗", held: "‖", released: "▸", certificate: "✉" };

export function Entries({ entries }: { entries: ActivityEntry[] }) {
  return (
    <ul class="activity">
      {entries.map((entry) => (
        <li key={entry.number}>
          <time dateTime={new Date(entry.at * 1000).toISOString()}>{time(entry.at)}</time>{" "}
          <span class={entry.kind}>
            <span aria-hidden="true">{MARKS[entry.kind]}</span> {entry.kind}
          </span>{" "}
          {entry.name && <NameLink name={entry.name} />} {entry.text} {entry.provider && `at ${entry.provider}`}
          {entry.because && <span class="related"> because {entry.because}</span>}{" "}
          {entry.reason && <Reason reason={entry.reason} />}
        </li>
      ))}
    </ul>
  );
}

export function ActivityView({ live }: { live: Live }) {
  const { data, error } = useAnswer<{ items: ActivityEntry[] }>("activity", live.version);
  return (
    <>
      <h1>Activity</h1>
      <p>The latest 500 changes since the start, newest first.</p>
      <Problem error={error} />
      {data?.items.length === 0 && <p>Nothing happened yet.</p>}
      {data && <Entries entries={data.items} />}
    </>
  );
}
