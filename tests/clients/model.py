# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a model's API on loopback: it plays a script of tool calls, and keeps what came back.

It speaks as much as the clients need: POST /v1/messages (Anthropic, streamed) and POST
/v1/responses (OpenAI, streamed).  It is strict: a request that is not JSON, a turn whose results
are not those of the calls before it, or a path that it has not is an answer of 4xx and an entry in
`wrong`.  Which turn comes next is read from the conversation, so a request that is sent again gets the same
answer.
"""
import http.server
import json
import threading


class Call:
    """What the model wants done: a tool and its arguments.  An argument that is a function is called with the model
    when its turn comes: it can read what came back before, and do what a person would do then.
    A tool of free form takes `input` alone."""

    def __init__(self, tool, **args):
        self.tool, self.args = tool, args

    def settle(self, model):
        self.args = {k: v(model) if callable(v) else v for k, v in self.args.items()}
        return self


class Model:
    """turns: lists of calls; after the last of them the model says `done` and nothing else."""

    def __init__(self, *turns):
        self.turns = [t if isinstance(t, list) else [t] for t in turns]
        self.results = {}   # call's id: text that came back
        self.failed = {}    # call's id: the client said that it went wrong
        self.requests, self.wrong, self.tools = [], [], {}
        self.lock = threading.Lock()
        self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("H", (Handler,), {"model": self}))
        self.httpd.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        self.thread = threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def close(self):
        self.httpd.shutdown()
        self.thread.join()
        self.httpd.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ids(self, turn):
        return [f"call_{turn:02}_{i:02}" for i in range(len(self.turns[turn]))]

    def result(self, turn, i=0):
        """What the model was told of a call; None: nothing."""
        return self.results.get(self.ids(turn)[i])

    def next_turn(self, told):
        """told: {id: (text, failed)} of the whole conversation.  The number of the turn that comes now."""
        for turn in range(len(self.turns)):
            have = [i in told for i in self.ids(turn)]
            if all(have):
                continue
            if any(have) or any(i in told for t in range(turn + 1, len(self.turns)) for i in self.ids(t)):
                raise ValueError(f"results {sorted(told)} fit no turn")
            break
        else:
            turn = len(self.turns)
        known = {i for t in range(turn) for i in self.ids(t)}
        if set(told) - known:
            raise ValueError(f"results of calls that were not made: {sorted(set(told) - known)}")
        for i, (text, failed) in told.items():
            self.results[i], self.failed[i] = text, failed
        return turn

    def calls(self, turn, tools):
        """[(id, call)] of a turn, of tools that the client has."""
        for c in self.turns[turn]:
            if c.tool not in tools:
                raise ValueError(f"the client has no tool {c.tool}, but {sorted(tools)}")
        return [(id, c.settle(self)) for id, c in zip(self.ids(turn), self.turns[turn])]


def plain(content):
    """The text of a content that is a text or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(p.get("text", "") for p in content if isinstance(p, dict))
    if isinstance(content, dict):
        return plain(content.get("content", json.dumps(content)))
    return ""


class Handler(http.server.BaseHTTPRequestHandler):
    model = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def refuse(self, status, why):
        with self.model.lock:
            self.model.wrong.append(f"{self.command} {self.path}: {why}")
        self.reply(status, {"type": "error", "error": {"type": "invalid_request_error", "message": why}})

    def reply(self, status, value):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self, events):
        data = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.refuse(404, "there is nothing of that name")

    do_HEAD = do_PUT = do_DELETE = do_PATCH = do_GET

    def do_POST(self):
        speak = {"/v1/messages": self.anthropic, "/v1/responses": self.openai}.get(self.path.partition("?")[0])
        try:
            data = self.rfile.read(int(self.headers["Content-Length"]))
        except (TypeError, ValueError):
            self.close_connection = True
            return self.refuse(411, "a length is wanted")
        if not speak:
            return self.refuse(404, "there is nothing of that name")
        try:
            body = json.loads(data)
            with self.model.lock:
                self.model.requests.append(body)
                events = list(speak(body))
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as e:
            return self.refuse(400, f"{type(e).__name__}: {e}")
        return self.stream(events)

    # ---- Anthropic ----

    def anthropic(self, body):
        m = self.model
        if body["stream"] is not True or not body["max_tokens"] > 0 or not body["model"]:
            raise ValueError("a streamed answer of some model is what can be had")
        told, asked = {}, set()
        for msg in body["messages"]:
            for part in msg["content"] if isinstance(msg["content"], list) else []:
                if part["type"] == "tool_use" and msg["role"] == "assistant":
                    asked.add(part["id"])
                elif part["type"] == "tool_result" and msg["role"] == "user":
                    if part["tool_use_id"] not in asked:
                        raise ValueError(f"a result without its call: {part['tool_use_id']}")
                    told[part["tool_use_id"]] = (plain(part.get("content")), part.get("is_error", False))
        if asked - set(told):
            raise ValueError(f"calls without a result: {sorted(asked - set(told))}")
        tools = {t["name"]: t for t in body.get("tools", [])}
        if not tools:  # a title, a summary: not the conversation
            return self.message(body["model"], [("text", "done")])
        m.tools.update(tools)
        turn = m.next_turn(told)
        if turn == len(m.turns):
            return self.message(body["model"], [("text", "done")])
        return self.message(body["model"], m.calls(turn, tools))

    @staticmethod
    def message(model, parts):
        yield {"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}}
        for i, (id, what) in enumerate(parts):
            if id == "text":
                start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": what}
            else:
                start = {"type": "tool_use", "id": id, "name": what.tool, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(what.args)}
            yield {"type": "content_block_start", "index": i, "content_block": start}
            yield {"type": "content_block_delta", "index": i, "delta": delta}
            yield {"type": "content_block_stop", "index": i}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn" if parts[0][0] == "text" else "tool_use", "stop_sequence": None},
               "usage": {"output_tokens": 1}}
        yield {"type": "message_stop"}

    # ---- OpenAI ----

    def openai(self, body):
        m = self.model
        if body["stream"] is not True or not body["model"]:
            raise ValueError("a streamed answer of some model is what can be had")
        told, asked = {}, set()
        for item in body["input"]:
            if item["type"] in ("function_call", "custom_tool_call"):
                asked.add(item["call_id"])
            elif item["type"] in ("function_call_output", "custom_tool_call_output"):
                if item["call_id"] not in asked:
                    raise ValueError(f"a result without its call: {item['call_id']}")
                told[item["call_id"]] = (plain(item["output"]), False)
        if asked - set(told):
            raise ValueError(f"calls without a result: {sorted(asked - set(told))}")
        tools = {}
        for t in body.get("tools", []) + [t for item in body["input"] if item["type"] == "additional_tools" for t in item["tools"]]:
            tools.update({x.get("name", x["type"]): x for x in (t["tools"] if t["type"] == "namespace" else [t])})
        m.tools.update(tools)
        turn = m.next_turn(told)
        if turn == len(m.turns):
            said = {"type": "output_text", "text": "done", "annotations": []}
            return self.response([{"type": "message", "id": "msg_1", "role": "assistant", "content": [said]}])
        items = []
        for id, c in m.calls(turn, tools):
            if tools[c.tool]["type"] == "custom":
                items.append({"type": "custom_tool_call", "id": "ctc_" + id, "call_id": id, "name": c.tool, "input": c.args["input"]})
            else:
                items.append({"type": "function_call", "id": "fc_" + id, "call_id": id, "name": c.tool, "arguments": json.dumps(c.args)})
        return self.response(items)

    @staticmethod
    def response(items):
        yield {"type": "response.created", "response": {"id": "resp_1"}}
        for i, item in enumerate(items):
            yield {"type": "response.output_item.done", "output_index": i, "item": item}
        yield {"type": "response.completed", "response": {"id": "resp_1", "usage": {
            "input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}}}
