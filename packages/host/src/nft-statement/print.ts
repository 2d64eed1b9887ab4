import type {
  NftChainSpec,
  NftCommand,
  NftExpression,
  NftNat,
  NftRuleSpec,
  NftRuleStatement,
  NftSetSpec,
  NftSubject,
  NftTypeSpec,
  NftVerdict,
} from "./syntax.ts";

/** How constants are written next to what they are compared with. */
type ConstantKind = "plain" | "mark" | "name";

/** Write a rule in nft's language, without its comment. Pure. */
export function printRule(statements: readonly NftRuleStatement[]): string {
  return statements.map(printStatement).join(" ");
}

/** Write a command in nft's language. Pure. */
export function printCommand(command: NftCommand): string {
  const [verb = ""] = Object.keys(command);
  const subject = (command as Readonly<Record<string, NftSubject | { readonly ruleset: null }>>)[verb] ?? { ruleset: null };
  if ("rule" in subject) return printRuleCommand(verb, subject.rule);
  if ("chain" in subject) return printChainCommand(verb, subject.chain);
  if ("ruleset" in subject) return `${verb} ruleset`;
  if ("table" in subject) return `${verb} table ${subject.table.family} ${subject.table.name}`;
  const kind = "set" in subject ? "set" : "map";
  const spec = "set" in subject ? subject.set : subject.map;
  return `${verb} ${kind} ${spec.family} ${spec.table} ${spec.name}${isMaking(verb) ? ` { ${printSetItems(spec)} }` : ""}`;
}

function printRuleCommand(verb: string, { family, table, chain, handle, expr, comment }: NftRuleSpec): string {
  const place = `${verb} rule ${family} ${table} ${chain}${handle === undefined ? "" : ` handle ${handle}`}`;
  const rule = expr === undefined || expr.length === 0 ? place : `${place} ${printRule(expr)}`;
  return comment === undefined ? rule : `${rule} comment "${comment}"`;
}

function printChainCommand(verb: string, { family, table, name, type = "", hook, prio = 0, policy }: NftChainSpec): string {
  const place = `${verb} chain ${family} ${table} ${name}`;
  if ((hook === undefined && policy === undefined) || !isMaking(verb)) return place;
  const at = hook === undefined ? "" : `${printHook({ type, hook, prio })}; `;
  return `${place} { ${at}${policy === undefined ? "" : `policy ${policy}; `}}`;
}

function isMaking(verb: string): boolean {
  return verb !== "delete" && verb !== "flush";
}

/** Where the kernel calls a chain in. */
export type NftHook = Required<Pick<NftChainSpec, "type" | "hook" | "prio">>;

/** Write where the kernel calls a chain in. Pure. */
export function printHook({ type, hook, prio }: NftHook): string {
  return `type ${type} hook ${hook} priority ${prio}`;
}

function printSetItems({ type = "", map, size, flags, timeout }: NftSetSpec): string {
  const isExample = typeof type === "object" && "typeof" in type;
  const types = map === undefined ? printType(type) : `${printType(type)} : ${printType(map)}`;
  const items = [
    `${isExample ? "typeof" : "type"} ${types};`,
    ...(size === undefined ? [] : [`size ${size};`]),
    ...(flags === undefined ? [] : [`flags ${flags.join(",")};`]),
    ...(timeout === undefined ? [] : [`timeout ${timeout}s;`]),
  ];
  return items.join(" ");
}

function printType(type: NftTypeSpec): string {
  if (typeof type === "string") return type;
  return "typeof" in type ? printExpression(type.typeof) : type.join(" . ");
}

function printStatement(statement: NftRuleStatement): string {
  const [word = ""] = Object.keys(statement);
  switch (word) {
    case "match":
      return printMatch((statement as Extract<NftRuleStatement, { match: unknown }>).match);
    case "vmap": {
      const { key, data } = (statement as Extract<NftRuleStatement, { vmap: unknown }>).vmap;
      return `${printExpression(key)} vmap ${printExpression(data)}`;
    }
    case "mangle": {
      const { key, value } = (statement as Extract<NftRuleStatement, { mangle: unknown }>).mangle;
      return `${printExpression(key)} set ${printExpression(value, constantsOf(key))}`;
    }
    case "jump":
    case "goto":
      return `${word} ${Object.values(statement as Readonly<Record<string, { readonly target: string }>>)[0]?.target}`;
    case "reject":
      return printReject((statement as Extract<NftRuleStatement, { reject: unknown }>).reject);
    case "set": {
      const { op, elem, set, stmt = [] } = (statement as Extract<NftRuleStatement, { set: unknown }>).set;
      return `${op} ${set} { ${[printExpression(elem), ...stmt.map(printStatement)].join(" ")} }`;
    }
    case "map": {
      const { op, elem, data, map } = (statement as Extract<NftRuleStatement, { map: unknown }>).map;
      return `${op} ${map} { ${printExpression(elem)} : ${printExpression(data)} }`;
    }
    case "dnat":
    case "snat":
    case "masquerade":
    case "redirect":
      return printNat(word, (statement as Readonly<Record<string, NftNat | null>>)[word] ?? {});
    default:
      return word;
  }
}

function printMatch({ op, left, right }: Extract<NftRuleStatement, { match: unknown }>["match"]): string {
  const isComputed = typeof left === "object" && ("&" in left || "|" in left || "^" in left);
  const operator = op === "in" || (op === "==" && !isComputed) ? "" : ` ${op}`;
  return `${printExpression(left)}${operator} ${printExpression(right, constantsOf(left))}`;
}

function printReject(body: Extract<NftRuleStatement, { reject: unknown }>["reject"]): string {
  return body === null ? "reject" : `reject with ${[body.type, body.expr].filter((part) => part !== undefined).join(" ")}`;
}

function printNat(word: string, { family, addr, port, flags }: NftNat): string {
  const address = addr === undefined ? "" : printExpression(addr);
  const isBracketed = port !== undefined && address.includes(":");
  const to = `${isBracketed ? `[${address}]` : address}${port === undefined ? "" : `:${printExpression(port)}`}`;
  const words = [word, ...(family === undefined ? [] : [family]), ...(to === "" ? [] : ["to", to])];
  return flags === undefined ? words.join(" ") : `${words.join(" ")} ${[flags].flat().join(",")}`;
}

/** What constants are for an expression: nft writes marks in hexadecimal, and names of devices in quotes. */
function constantsOf(expression: NftExpression): ConstantKind {
  if (typeof expression !== "object") return "plain";
  if ("&" in expression) return constantsOf(expression["&"][0]);
  const key = "meta" in expression ? expression.meta.key : "ct" in expression ? expression.ct.key : "";
  return key === "mark" ? "mark" : key === "iifname" || key === "oifname" ? "name" : "plain";
}

function printExpression(expression: NftExpression, constants: ConstantKind = "plain"): string {
  if (typeof expression === "number") return constants === "mark" ? `0x${expression.toString(16).padStart(8, "0")}` : String(expression);
  if (typeof expression === "string") return constants === "name" && !expression.startsWith("@") ? `"${expression}"` : expression;
  const [word = ""] = Object.keys(expression);
  return (PRINTERS as Readonly<Record<string, Printer>>)[word]?.(expression as AnyExpression, constants) ?? "";
}

type KeysOf<One> = One extends unknown ? keyof One : never;
type ExpressionWord = KeysOf<Exclude<NftExpression, string | number>>;
/** All members that an expression may have. */
type AnyExpression = {
  readonly [K in ExpressionWord]: Extract<Exclude<NftExpression, string | number>, { readonly [_ in K]: unknown }>[K];
};
type Printer = (expression: AnyExpression, constants: ConstantKind) => string;

/** By the word that an expression is called by: a chain of affinity has thousands of them. */
const PRINTERS: Readonly<Record<ExpressionWord, Printer>> = {
  payload: ({ payload: { protocol, field } }) => `${protocol} ${field}`,
  meta: ({ meta: { key } }) => (key === "iifname" || key === "oifname" ? key : `meta ${key}`),
  ct: ({ ct: { key, dir } }) => (dir === undefined ? `ct ${key}` : `ct ${dir} ${key}`),
  fib: ({ fib: { flags, result } }) => `fib ${flags.join(" . ")} ${result}`,
  numgen: ({ numgen: { mode, mod, offset } }) => `numgen ${mode} mod ${mod}${offset === undefined ? "" : ` offset ${offset}`}`,
  concat: ({ concat }, constants) => concat.map((part) => printExpression(part, constants)).join(" . "),
  prefix: ({ prefix: { addr, len } }) => `${addr}/${len}`,
  range: ({ range }, constants) => range.map((end) => printExpression(end, constants)).join("-"),
  map: ({ map: { key, data } }) => `${printExpression(key)} map ${printExpression(data)}`,
  elem: ({ elem: { val, timeout } }) => `${printExpression(val)}${timeout === undefined ? "" : ` timeout ${timeout}s`}`,
  set: ({ set }, constants) => `{ ${set.map((element) => printElement(element, constants)).join(", ")} }`,
  "&": (expression, constants) => printOperation("and", expression["&"], constants),
  "|": (expression, constants) => printOperation("or", expression["|"], constants),
  "^": (expression, constants) => printOperation("xor", expression["^"], constants),
};

function printOperation(word: string, parts: readonly [NftExpression, NftExpression], constants: ConstantKind): string {
  const kind = constants === "plain" ? constantsOf(parts[0]) : constants;
  return parts.map((part) => printExpression(part, kind)).join(` ${word} `);
}

function printElement(element: WrittenElement, constants: ConstantKind): string {
  if (!isPair(element)) return printExpression(element, constants);
  const [key, data] = element;
  return `${printExpression(key, constants)} : ${isVerdict(data) ? printStatement(data) : printExpression(data)}`;
}

type WrittenElement = Extract<NftExpression, { set: unknown }>["set"][number];

function isPair(element: WrittenElement): element is Extract<WrittenElement, readonly unknown[]> {
  return Array.isArray(element);
}

function isVerdict(data: NftExpression | NftVerdict): data is NftVerdict {
  return typeof data === "object" && ["accept", "drop", "continue", "return", "jump", "goto"].some((word) => word in data);
}
