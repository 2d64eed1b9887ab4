/**
 * Read an API server's address as client-go does: a URL, or `HOST`, `HOST:PORT` without a scheme.
 *
 * Edges: without a scheme there is no path; `isTlsDefault` chooses https then. An IPv6 address needs brackets. Undefined: not an address.
 * @source client-go v0.37.2 rest/url_utils.go DefaultServerURL
 */
export function serverAddress(text: string, isTlsDefault: boolean): URL | undefined {
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const whole = hasScheme ? text : `${isTlsDefault ? "https" : "http"}://${text}`;
  if (!URL.canParse(whole)) return undefined;
  const url = new URL(whole);
  if (!/^https?:$/.test(url.protocol) || (!hasScheme && url.pathname !== "/")) return undefined;
  return url;
}
