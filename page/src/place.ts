// The place in the page, which is the part of the URL behind `#`: a view, what it is about, and its parameters.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  view: string;
  /** What the view is about, such as a hostname. */
  subject?: string;
  query: Record<string, string>;
}

export function parse(hash: string): Place {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", subject] = path.split("/", 2);
  const query = Object.fromEntries(new URLSearchParams(search));
  return { view: view || "names", query, ...(subject && { subject: decode(subject) }) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function href(view: string, subject?: string, query: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) search.set(key, value);
  const text = search.toString();
  return `#/${view}${subject ? `/${encodeURIComponent(subject)}` : ""}${text ? `?${text}` : ""}`;
}

/** Changes parameters of the present view; typing leaves one entry in the history. */
export function change(query: Record<string, string | undefined>, replaces = false) {
  const place = parse(location.hash);
  const next = href(place.view, place.subject, { ...place.query, ...query });
  if (replaces) {
    history.replaceState(null, "", next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = next;
  }
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => parse(location.hash));
  useEffect(() => {
    const moved = () => setPlace(parse(location.hash));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}
