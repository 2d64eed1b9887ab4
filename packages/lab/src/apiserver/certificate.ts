import { createPublicKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { addressBytes } from "../raw/libc.ts";

/** A certificate and its private key, PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Who a certificate is for. */
export interface CertificateSubject {
  /** For clients the user's name. */
  readonly commonName: string;
  /** For clients the user's group. */
  readonly organization?: string;
  /** Names and addresses a server answers to. */
  readonly hosts?: readonly string[];
}

/** A certificate authority for one laboratory; its key never leaves the process. */
export interface Authority {
  /** PEM. */
  readonly cert: string;
  issue(subject: CertificateSubject): Certificate;
}

const VALID_MS = 24 * 60 * 60 * 1000;

/** Make an authority with P-256 keys; what it issues is valid from an hour before `nowMs` for a day. */
export function createAuthority(commonName: string, nowMs: number): Authority {
  const keys = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const validity = sequence(time(nowMs - 60 * 60 * 1000), time(nowMs + VALID_MS));
  const certify = (subject: Buffer, publicKey: KeyObject, extensions: readonly Buffer[]): string => {
    const algorithm = sequence(oid(ECDSA_SHA256));
    const body = sequence(
      der(0xa0, der(0x02, Buffer.from([2]))),
      // A leading zero would not be canonical, a set top bit negative.
      der(0x02, Buffer.concat([Buffer.from([0x01]), randomBytes(15)])),
      algorithm,
      nameOf(commonName),
      validity,
      subject,
      publicKey.export({ type: "spki", format: "der" }),
      der(0xa3, sequence(...extensions)),
    );
    const signature = sign("sha256", body, keys.privateKey);
    return pem("CERTIFICATE", sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature]))));
  };
  return {
    cert: certify(nameOf(commonName), keys.publicKey, [extension(BASIC_CONSTRAINTS, sequence(der(0x01, Buffer.from([0xff]))))]),
    issue: ({ commonName: subject, organization, hosts = [] }) => {
      const own = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
      const key = own.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
      const names = hosts.length === 0 ? [] : [extension(ALT_NAMES, sequence(...hosts.map(altName)))];
      const constraints = extension(BASIC_CONSTRAINTS, sequence());
      return { cert: certify(nameOf(subject, organization), createPublicKey(key), [constraints, ...names]), key };
    },
  };
}

const ECDSA_SHA256 = [1, 2, 840, 10045, 4, 3, 2];
const COMMON_NAME = [2, 5, 4, 3];
const ORGANIZATION = [2, 5, 4, 10];
const BASIC_CONSTRAINTS = [2, 5, 29, 19];
const ALT_NAMES = [2, 5, 29, 17];

/** One DER value: tag, length, content. */
function der(tag: number, content: Buffer): Buffer {
  const length: number[] = [];
  for (let rest = content.length; rest > 0; rest >>= 8) length.unshift(rest & 0xff);
  const header = content.length < 0x80 ? [tag, content.length] : [tag, 0x80 | length.length, ...length];
  return Buffer.concat([Buffer.from(header), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function oid([first = 0, second = 0, ...rest]: readonly number[]): Buffer {
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const digits = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) digits.unshift(0x80 | (left & 0x7f));
    bytes.push(...digits);
  }
  return der(0x06, Buffer.from(bytes));
}

function nameOf(commonName: string, organization?: string): Buffer {
  const part = (id: readonly number[], text: string): Buffer => der(0x31, sequence(oid(id), der(0x0c, Buffer.from(text))));
  return sequence(...(organization === undefined ? [] : [part(ORGANIZATION, organization)]), part(COMMON_NAME, commonName));
}

function time(ms: number): Buffer {
  // UTCTime: YYMMDDHHMMSSZ, good until 2049.
  const digits = new Date(ms)
    .toISOString()
    .replace(/\.\d+Z$/, "")
    .replace(/\D/g, "");
  return der(0x17, Buffer.from(`${digits.slice(2)}Z`));
}

function extension(id: readonly number[], value: Buffer): Buffer {
  return sequence(oid(id), der(0x04, value));
}

function altName(host: string): Buffer {
  return isIP(host) === 0 ? der(0x82, Buffer.from(host)) : der(0x87, addressBytes(host));
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
