import { sha256 } from "@noble/hashes/sha2.js";
import { Buffer } from "buffer/index.js";

/** What is digested so far. */
interface Hash {
  update(data: string | Uint8Array): Hash;
  digest(): Buffer;
  digest(encoding: "hex" | "base64url"): string;
}

/** As `createHash` of node:crypto, for the one algorithm that names are made by. @throws {Error} for any other. */
export function createHash(algorithm: string): Hash {
  if (algorithm !== "sha256") throw new Error(`no ${algorithm} here`);
  const hasher = sha256.create();
  function digest(): Buffer;
  function digest(encoding: "hex" | "base64url"): string;
  function digest(encoding?: "hex" | "base64url"): Buffer | string {
    const bytes = Buffer.from(hasher.digest());
    if (encoding === undefined) return bytes;
    return encoding === "hex" ? bytes.toString("hex") : base64url(bytes);
  }
  const made: Hash = {
    update(data) {
      hasher.update(typeof data === "string" ? new TextEncoder().encode(data) : data);
      return made;
    },
    digest,
  };
  return made;
}

/** As `hash` of node:crypto. */
export function hash(algorithm: string, data: string | Uint8Array, encoding: "hex" | "base64url" = "hex"): string {
  return createHash(algorithm).update(data).digest(encoding);
}

function base64url(bytes: Buffer): string {
  return bytes.toString("base64").replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
