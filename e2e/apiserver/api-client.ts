import type { Place } from "@turnout/lab";

/** One request to the API server. */
export interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: object;
}

/** Its answer. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: string;
}

/** Whom to ask, and as whom. */
export interface ApiAccess {
  readonly server: string;
  /** Path of the authority's certificate. */
  readonly ca: string;
  readonly token: string;
}

/** Asks the API server from a place that reaches it, with curl: this process is in another network. */
export class ApiClient {
  readonly #place: Place;
  readonly #access: ApiAccess;

  constructor(place: Place, access: ApiAccess) {
    this.#place = place;
    this.#access = access;
  }

  /** Send requests one after the other over one connection. @throws {Error} on the first that is not answered with 2xx. */
  async send(requests: readonly ApiRequest[]): Promise<readonly unknown[]> {
    const answers = await this.#ask(requests);
    return requests.map(({ method, path }, index) => {
      const { status, body } = answers[index] ?? { status: 0, body: "no answer" };
      if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${body.slice(0, 500)}`);
      return JSON.parse(body) as unknown;
    });
  }

  /** Get one object or list. */
  async get<T>(path: string): Promise<T> {
    const [body] = await this.send([{ method: "GET", path }]);
    return body as T;
  }

  /** Send one request; undefined: the server can't be reached. */
  async tryAsk(request: ApiRequest): Promise<ApiAnswer | undefined> {
    try {
      return (await this.#ask([request]))[0];
    } catch {
      return undefined;
    }
  }

  async #ask(requests: readonly ApiRequest[]): Promise<readonly ApiAnswer[]> {
    if (requests.length === 0) return [];
    const input = requests.map((request) => this.#curl(request)).join("next\n");
    const { stdout } = await this.#place.run("curl", ["-sS", "--fail-early", "-K", "-"], { input });
    const parts = stdout.split(/\n@@(\d{3})\n/);
    return requests.map((_request, index) => ({ body: parts[2 * index] ?? "", status: Number(parts[2 * index + 1]) }));
  }

  #curl({ method, path, body }: ApiRequest): string {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const options = {
      url: this.#access.server + path,
      request: method,
      cacert: this.#access.ca,
      // The API server breaks lines for a client that calls itself curl.
      "user-agent": "turnout-e2e",
      "max-time": "30",
      "write-out": "\n@@%{http_code}\n",
      ...(body === undefined ? {} : { "data-binary": JSON.stringify(body) }),
    };
    const headers = [`Authorization: Bearer ${this.#access.token}`, `Content-Type: ${type}`].map((header) => ["header", header] as const);
    return [...Object.entries(options), ...headers].map(([name, value]) => `${name} = ${quoted(value)}\n`).join("");
  }
}

/** As curl's configuration has texts. */
function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}
