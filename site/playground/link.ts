import { stateFrom } from "./state.ts";
import type { PlaygroundState } from "./state.ts";

/** What a link's fragment begins with; another number is another form. */
const PREFIX = "#1=";
/** A link of a few kilobytes may unpack to very much: more than this is no cluster that somebody typed. */
const UNPACKED_MAX = 4_000_000;
/**
 * More is no link that can be handed on: browsers know longer addresses, but their address bars don't show them.
 * @source Chromium docs/security/url_display_guidelines: 32 kB; the page's own address is part of it
 */
export const FRAGMENT_MAX = 32_000;

/** Write a state as a link's fragment: JSON, deflated, in base64url. Undefined: it is too long, or no page would read it. */
export async function fragmentOf(state: PlaygroundState): Promise<string | undefined> {
  const json = JSON.stringify(state);
  if (json.length > UNPACKED_MAX) return undefined;
  const packed = new Blob([json]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  const fragment = PREFIX + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return fragment.length > FRAGMENT_MAX ? undefined : fragment;
}

/** Read a state from a link's fragment; undefined where it is not one of ours, or was cut off. */
export async function stateOfFragment(fragment: string): Promise<PlaygroundState | undefined> {
  if (!fragment.startsWith(PREFIX)) return undefined;
  try {
    const text = atob(fragment.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
    const json = await unpacked(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")));
    return json === undefined ? undefined : stateFrom(JSON.parse(json));
  } catch (error) {
    // A broken link: of base64, of what is packed, or of JSON.
    if (error instanceof DOMException || error instanceof TypeError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

async function unpacked(stream: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if (text.length > UNPACKED_MAX) {
      await reader.cancel();
      return undefined;
    }
  }
}
