"""Without a model, in a message that Slack lets grow: a file's error lines, as the asker's."""

from bot.demo.workspace.files import Upload
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from tests.fixtures_service import Start, stage
from tests.stage import Asked, says

__all__ = ["stage"]

LOG = Upload("app.log", b"10:00:01 INFO start\n" + b"10:00:02 ERROR pool exhausted\n" * 8)
SETTINGS = {"llm": {"default_provider": "triage"}, "slack": {"stream": "native"}}


async def test_triage_quotes_the_error_lines_of_a_file_with_their_source(stage: Start) -> None:
    async with stage(says("never"), SETTINGS) as running:
        text = "@kortex show me the logs of checkout"
        ts = await running.workspace.say(RESPONDER, CHECKOUT, text, files=[LOG])
        answer = await running.answer(Asked(CHECKOUT, ts, ts))
        refused = [call.error for call in running.workspace.calls if call.method != "bots.info"]

    assert "Newest lines of checkout (" in answer
    assert '- in the file, line 2, 8 times like it: "ERROR pool exhausted"' in answer
    assert "I did not measure any of them [E1]" in answer
    assert not any(refused)
    assert running.models.requests == []
