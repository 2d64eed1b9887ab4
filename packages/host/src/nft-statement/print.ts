import type {
  NftChainSpec,
  NftCommand,
  NftExpression,
  NftNat,
  NftRuleStatement,
  NftSetSpec,
  NftSubject,
  NftTypeSpec,
  NftVerdict,
} from "./syntax.ts";

/** How constants are written next to what they are compared with. */
type ConstantKind = "plain" | "mark" | "name";

const OPERATORS = { "&": "and", "|": "or", "^": "xor" } as const;

/** Write a rule in nft's language, without its comment. Pure. */
export function printRule(statements: readonly NftRuleStatement[]): string {
  return statements.map(printStatement).join(" ");
}

/** Write a command in nft's language. Pure. */
export function printCommand(command: NftCommand): string {
  const [verb, subject] = Object.entries(command)[0] as [string, NftSubject | { readonly ruleset: null }];
  if ("ruleset" in subject) return `${verb} ruleset`;
  if ("table" in subject) return `${verb} table ${subject.table.family} ${subject.table.name}`;
  const isMade = verb !== "delete" && verb !== "flush";
  if ("rule" in subject) {
    const { family, table, chain, handle, expr = [], comment } = subject.rule;
    const words = [
      `${verb} rule ${family} ${table} ${chain}`,
      ...(handle === undefined ? [] : [`handle ${handle}`]),
      ...expr.map(printStatement),
      ...(comment === undefined ? [] : [`comment "${comment}"`]),
    ];
    return words.join(" ");
  }
  if ("chain" in subject) {
    const { family, table, name, type = "", hook, prio = 0, policy } = subject.chain;
    const items = [
      ...(hook === undefined ? [] : [`${printHook({ type, hook, prio })};`]),
      ...(policy === undefined ? [] : [`policy ${policy};`]),
    ];
    return `${verb} chain ${family} ${table} ${name}${isMade && items.length > 0 ? ` { ${items.join(" ")} }` : ""}`;
  }
  const kind = "set" in subject ? "set" : "map";
  const spec = "set" in subject ? subject.set : subject.map;
  return `${verb} ${kind} ${spec.family} ${spec.table} ${spec.name}${isMade ? ` { ${printSetItems(spec)} }` : ""}`;
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
  const [word, body] = Object.entries(statement)[0] as [string, NftNat | null];
  if ("match" in statement) return printMatch(statement.match);
  if ("vmap" in statement) return `${printExpression(statement.vmap.key)} vmap ${printExpression(statement.vmap.data)}`;
  if ("mangle" in statement) {
    const { key, value } = statement.mangle;
    return `${printExpression(key)} set ${printExpression(value, constantsOf(key))}`;
  }
  if ("jump" in statement) return `jump ${statement.jump.target}`;
  if ("goto" in statement) return `goto ${statement.goto.target}`;
  if ("reject" in statement) return printReject(statement.reject);
  if ("set" in statement) {
    const { op, elem, set, stmt = [] } = statement.set;
    return `${op} ${set} { ${[printExpression(elem), ...stmt.map(printStatement)].join(" ")} }`;
  }
  return body === null || word === "counter" ? word : printNat(word, body);
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
  if ("payload" in expression) return `${expression.payload.protocol} ${expression.payload.field}`;
  if ("meta" in expression) return constantsOf(expression) === "name" ? expression.meta.key : `meta ${expression.meta.key}`;
  if ("ct" in expression) return ["ct", expression.ct.dir, expression.ct.key].filter((part) => part !== undefined).join(" ");
  if ("fib" in expression) return `fib ${expression.fib.flags.join(" . ")} ${expression.fib.result}`;
  if ("numgen" in expression) {
    const { mode, mod, offset } = expression.numgen;
    return `numgen ${mode} mod ${mod}${offset === undefined ? "" : ` offset ${offset}`}`;
  }
  if ("concat" in expression) return expression.concat.map((part) => printExpression(part, constants)).join(" . ");
  if ("prefix" in expression) return `${expression.prefix.addr}/${expression.prefix.len}`;
  if ("range" in expression) return expression.range.map((end) => printExpression(end, constants)).join("-");
  if ("map" in expression) return `${printExpression(expression.map.key)} map ${printExpression(expression.map.data)}`;
  if ("elem" in expression) {
    const { val, timeout } = expression.elem;
    return `${printExpression(val)}${timeout === undefined ? "" : ` timeout ${timeout}s`}`;
  }
  if ("set" in expression) return `{ ${expression.set.map((element) => printElement(element, constants)).join(", ")} }`;
  return printOperation(expression, constants);
}

function printOperation(
  expression: Extract<NftExpression, { "&": unknown } | { "|": unknown } | { "^": unknown }>,
  constants: ConstantKind,
): string {
  const [operator, parts] = Object.entries(expression)[0] as [keyof typeof OPERATORS, readonly NftExpression[]];
  const kind = constants === "plain" && parts[0] !== undefined ? constantsOf(parts[0]) : constants;
  return parts.map((part) => printExpression(part, kind)).join(` ${OPERATORS[operator]} `);
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
