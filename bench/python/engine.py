"""The embedded planner in PyTorch, on the CPU: what the engine is measured against.

`engine.py WORKLOAD.json` loads the same weights and the same batch, then answers each line of stdin, one of
{"do": "train" | "forward" | "sample", "threads": N, "passes": N}, with a line {"seconds", "tokens", "logprobs"?}. It pads to the
same lengths, computes the last layer only where there is a target, holds a response to the same tokens where a row says
which ("supports"), and decodes with preallocated keys and values.
"""

import json
import math
import sys
import time

import torch
import torch.nn.functional as F

EPS = 1e-6
COPY_WIDTH = 32


def read_weights(path):
    with open(path, "rb") as file:
        raw = file.read()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        values = torch.frombuffer(bytearray(raw[8 + size + start : 8 + size + end]), dtype=torch.float32)
        out[name] = values.reshape(entry["shape"]).clone()
    return out


def norm(x):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)


class Planner(torch.nn.Module):
    def __init__(self, config, weights):
        super().__init__()
        self.config = config
        self.w = torch.nn.ParameterDict({k.replace(".", "/"): torch.nn.Parameter(v) for k, v in weights.items()})
        head = config["width"] // config["heads"]
        angle = torch.arange(4096)[:, None] * torch.pow(10000.0, -torch.arange(head // 2) / (head // 2))[None]
        self.cos = torch.cat([angle.cos(), angle.cos()], -1)
        self.sin = torch.cat([angle.sin(), angle.sin()], -1)

    def turn(self, x, positions):
        """x (B, H, T, h) by rotary positions (T,)."""
        half = x.shape[-1] // 2
        partner = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * self.cos[positions] + partner * self.sin[positions]

    def embed(self, tokens):
        """tokens (B, T), -1 for padding: own embedding, plus the shifted one of the token before."""
        e = self.w["embed"]
        own = e[tokens.clamp(min=0)] * (tokens >= 0)[..., None]
        before = F.pad(own[:, :-1], (0, 0, 1, 0)) @ self.w["shift"]
        return math.sqrt(self.config["width"]) * (own + before * (tokens >= 0)[..., None])

    def heads(self, x):
        b, t, d = x.shape
        return x.view(b, t, self.config["heads"], d // self.config["heads"]).transpose(1, 2)

    def mask(self, tokens, outputs):
        t = tokens.shape[1]
        place = torch.arange(t)
        seen = place[None, :] <= place[t - outputs :, None]
        allowed = seen[None] & (tokens >= 0)[:, None, :]
        # A row of padding sees itself, or its softmax would be of nothing.
        return (allowed | (place[None, :] == place[t - outputs :, None])[None])[:, None]

    def forward(self, tokens, outputs, cache=None):
        """Logits (B, S, V), copy scores (B, S, T), gates (B, S) of the last `outputs` positions."""
        x = self.embed(tokens)
        b, t, d = x.shape
        layers = self.config["layers"]
        place = torch.arange(t)
        full = self.mask(tokens, t) if layers > 1 else None
        keys = None
        for l in range(layers):
            last = l == layers - 1
            s = outputs if last else t
            n = norm(x)
            w = lambda name: self.w[f"layers/{l}/{name}"]
            k = self.turn(self.heads(n @ w("wk")), place)
            v = self.heads(n @ w("wv"))
            if last and self.config["copy"]:
                keys = n @ self.w["copy/key"]
            q = self.turn(self.heads(n[:, t - s :] @ w("wq")), place[t - s :])
            mask = full if s == t and full is not None else self.mask(tokens, s)
            o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = x[:, t - s :] + o.transpose(1, 2).reshape(b, s, d) @ w("wo")
            x = x + F.relu(norm(x) @ w("w1")).square() @ w("w2")
            if cache is not None:
                cache["k"][l][:, :, :t] = k
                cache["v"][l][:, :, :t] = v
        if cache is not None and keys is not None:
            cache["copy"][:, :t] = keys
        return self.head(x, keys)

    def head(self, x, keys):
        hidden = norm(x) * self.w["gain"]
        logits = hidden @ self.w["embed"].t()
        if keys is None:
            return logits, None, None
        query = hidden @ self.w["copy/query"] / math.sqrt(COPY_WIDTH)
        return logits, query @ keys.transpose(1, 2), (hidden @ self.w["copy/gate"])[..., 0]

    def step(self, token, before, at, tokens, cache):
        """One token a row at padded position `at`, with keys and values of those before."""
        e = self.w["embed"]
        x = math.sqrt(self.config["width"]) * (e[token] + e[before] @ self.w["shift"])[:, None]
        b, _, d = x.shape
        place = torch.tensor([at])
        seen = (tokens[:, : at + 1] >= 0)[:, None, None, :]
        for l in range(self.config["layers"]):
            n = norm(x)
            w = lambda name: self.w[f"layers/{l}/{name}"]
            k, v = cache["k"][l], cache["v"][l]
            k[:, :, at : at + 1] = self.turn(self.heads(n @ w("wk")), place)
            v[:, :, at : at + 1] = self.heads(n @ w("wv"))
            if l == self.config["layers"] - 1 and self.config["copy"]:
                cache["copy"][:, at : at + 1] = n @ self.w["copy/key"]
            q = self.turn(self.heads(n @ w("wq")), place)
            o = F.scaled_dot_product_attention(q, k[:, :, : at + 1], v[:, :, : at + 1], attn_mask=seen)
            x = x + o.transpose(1, 2).reshape(b, 1, d) @ w("wo")
            x = x + F.relu(norm(x) @ w("w1")).square() @ w("w2")
        return self.head(x, cache["copy"][:, : at + 1] if self.config["copy"] else None)


def masses(logits, copy, gate, tokens, allowed):
    """Unnormalised probabilities (B, V) of the next token, one of `allowed` (V): own logits and what is copied."""
    logits = logits[:, -1].masked_fill(~allowed, -1e30)
    if copy is None:
        return torch.softmax(logits, -1)
    scores = (copy[:, -1] + gate[:, -1:]).masked_fill((tokens < 0) | ~allowed[tokens], -1e30)
    top = torch.maximum(logits.max(-1).values, scores.max(-1).values)[:, None]
    mass = (logits - top).exp()
    return mass.scatter_add(1, tokens.clamp(min=0), (scores - top).exp())


class Bench:
    def __init__(self, work):
        self.work = work
        self.model = Planner(work["config"], read_weights(work["weights"]))
        self.adam = torch.optim.Adam(self.model.parameters(), lr=1e-12, betas=(0.9, 0.99), fused=True)
        self.tiles = [self.prepare(tile) for tile in work["tiles"]]
        self.allowed = torch.zeros(work["maxTokens"], work["config"]["vocab"], dtype=torch.bool)
        for i, ids in enumerate(work["allowed"]):
            self.allowed[i, ids] = True
        self.trained = sum(len(row["tokens"]) for row in work["rows"])

    def prepare(self, tile):
        length, outputs = tile["length"], tile["outputs"]
        rows = [self.work["rows"][i] for i in tile["places"]]
        tokens = torch.full((len(rows), length), -1)
        shape = (len(rows), outputs)
        target, weight = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
        old, advantage = torch.zeros(shape), torch.zeros(shape)
        for b, row in enumerate(rows):
            n = len(row["tokens"])
            tokens[b, length - n :] = torch.tensor(row["tokens"])
            s = min(n, outputs)
            for into, key in ((target, "targets"), (weight, "weights"), (old, "logprobs"), (advantage, "advantages")):
                into[b, outputs - s :] = torch.tensor(row[key][n - s :]).to(into.dtype)
        masks = None
        if rows[0]["supports"] is not None:
            masks = torch.ones(*shape, self.work["config"]["vocab"], dtype=torch.bool)
            for b, row in enumerate(rows):
                for i, ids in enumerate(row["supports"]):
                    masks[b, outputs - len(row["supports"]) + i] = False
                    masks[b, outputs - len(row["supports"]) + i, ids] = True
        return tokens, outputs, target, weight, old, advantage, masks

    def logprobs(self, tile):
        tokens, outputs, target = tile[:3]
        masks = tile[6]
        logits, copy, gate = self.model(tokens, outputs)
        if masks is not None:
            logits = logits.masked_fill(~masks, -1e30)
        picked = logits.gather(-1, target[..., None])[..., 0]
        if copy is None:
            return picked - logits.logsumexp(-1)
        t = tokens.shape[1]
        place = torch.arange(t)
        seen = (place[None, :] <= place[t - outputs :, None])[None] & (tokens >= 0)[:, None, :]
        if masks is not None:
            seen = seen & masks.gather(-1, tokens.clamp(min=0)[:, None, :].expand(-1, outputs, -1))
        scores = (copy + gate[..., None]).masked_fill(~seen, -1e30)
        same = scores.masked_fill(tokens[:, None, :] != target[..., None], -1e30)
        total = torch.logaddexp(logits.logsumexp(-1), scores.logsumexp(-1))
        return torch.logaddexp(picked, same.logsumexp(-1)) - total

    def forward(self):
        out = []
        with torch.inference_mode():
            for tile in self.tiles:
                out.append(torch.where(tile[3] > 0, self.logprobs(tile), 0.0).sum(-1).tolist())
        return out

    def train(self):
        denominator = sum(tile[3].sum() for tile in self.tiles)
        for tile in self.tiles:
            weight, old, advantage = tile[3:6]
            ratio = (self.logprobs(tile) - old).clamp(-20, 20).exp()
            loss = torch.maximum(-ratio * advantage, -ratio.clamp(0.8, 1.2) * advantage)
            (torch.where(weight > 0, loss * weight, 0.0).sum() / denominator).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.adam.step()
        self.adam.zero_grad()
        return self.trained

    def sample(self):
        prompts, more = self.work["prompts"], self.work["maxTokens"]
        config = self.model.config
        length = self.work["promptLength"]
        head = config["width"] // config["heads"]
        shape = (len(prompts), config["heads"], length + more, head)
        with torch.inference_mode():
            tokens = torch.full((len(prompts), length + more), -1)
            for b, prompt in enumerate(prompts):
                tokens[b, length - len(prompt) : length] = torch.tensor(prompt)
            layers = range(config["layers"])
            cache = {
                "k": [torch.zeros(shape) for _ in layers],
                "v": [torch.zeros(shape) for _ in layers],
                "copy": torch.zeros(len(prompts), length + more, COPY_WIDTH),
            }
            outputs = self.model(tokens[:, :length], 1, cache)
            for i in range(more):
                at = length + i
                mass = masses(*outputs, tokens[:, :at], self.allowed[i])
                token = torch.multinomial(mass, 1)[:, 0]
                (mass.gather(1, token[:, None])[:, 0] / mass.sum(-1)).log().tolist()
                tokens[:, at] = token
                if i + 1 < more:
                    outputs = self.model.step(token, tokens[:, at - 1], at, tokens, cache)
        return len(prompts) * more


def main():
    torch.manual_seed(0)
    with open(sys.argv[1]) as file:
        bench = Bench(json.load(file))
    print(json.dumps({"ready": True, "version": f"torch {torch.__version__}"}), flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        torch.set_num_threads(ask["threads"])
        started = time.perf_counter()
        if ask["do"] == "forward":
            reply = {"logprobs": bench.forward(), "tokens": bench.trained}
        else:
            work = bench.train if ask["do"] == "train" else bench.sample
            reply = {"tokens": sum(work() for _ in range(ask["passes"]))}
        print(json.dumps({"seconds": time.perf_counter() - started, **reply}), flush=True)


main()
