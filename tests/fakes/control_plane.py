"""A control plane in memory. What it did is counted apart from what it answered."""

from dataclasses import dataclass, field

from adapters.control_plane.port import AnswerKind, ControlAnswer, ControlOrder

DONE = ControlAnswer(AnswerKind.SUCCEEDED, "answered 200", 200, {"status": "rolled back"})
LOST = ControlAnswer(AnswerKind.LOST, "did not answer in time")


@dataclass
class FakeControlPlane:
    """`answer` is what a POST gets; it takes effect unless the answer is a refusal.

    A GET returns what took effect, after the answers in `before_settled`.
    """

    answer: ControlAnswer = DONE
    before_settled: list[ControlAnswer] = field(default_factory=list)
    posts: list[ControlOrder] = field(default_factory=list)
    asked: list[ControlOrder] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)

    async def send(self, order: ControlOrder) -> ControlAnswer:
        self.posts.append(order)
        if self.answer.kind in (AnswerKind.SUCCEEDED, AnswerKind.LOST):
            self.effects.append(order.idempotency_key)
        return self.answer

    async def ask(self, order: ControlOrder) -> ControlAnswer:
        self.asked.append(order)
        if self.before_settled:
            return self.before_settled.pop(0)
        if order.idempotency_key in self.effects:
            return DONE
        return ControlAnswer(AnswerKind.LOST, "status lookup says not_received", 200)
