// The token of whoever looks, where the server asks for one: kept for this tab alone, and sent with every request.
const KEY = "gatepost-token";
/** Told when the server asks for a token, or for another one. */
export const TOKEN_NEEDED = "gatepost-token-needed";

export function token(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined; // A page from a file, or a browser that keeps nothing.
  }
}

export function keepToken(text: string | undefined) {
  if (text) sessionStorage.setItem(KEY, text);
  else sessionStorage.removeItem(KEY);
}

export function headers(): Record<string, string> {
  const own = token();
  return own ? { authorization: `Bearer ${own}` } : {};
}
