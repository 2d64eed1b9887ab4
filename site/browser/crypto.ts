import { sha256 } from "@noble/hashes/sha2.js";
import { Buffer } from "buffer/index.js";

/** As `hash` of node:crypto, for the one algorithm that names are made by. @throws {Error} for any other. */
export function hash(algorithm: string, data: string | Uint8Array, encoding: "hex" | "base64url" | "binary" = "hex"): string {
  if (algorithm !== "sha256") throw new Error(`no ${algorithm} here`);
  const bytes = Buffer.from(sha256(typeof data === "string" ? new TextEncoder().encode(data) : data));
  return encoding === "base64url" ? base64url(bytes) : bytes.toString(encoding);
}

function base64url(bytes: Buffer): string {
  return bytes.toString("base64").replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
