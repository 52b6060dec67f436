"""What tokens cost: a model's list price, and what a round of it comes to. Arithmetic only."""

from dataclasses import dataclass

from adapters.llm.messages import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-dollars per million tokens, by bucket.

    A request with more than `above_tokens` of input costs `above`, all of it.
    """

    input_uncached: int
    cache_read: int
    cache_write: int
    output: int
    above_tokens: int = 0
    above: "Price | None" = None

    @property
    def is_free(self) -> bool:
        """Whether nothing of it costs anything."""
        return not (self.input_uncached or self.cache_read or self.cache_write or self.output)

    def cost_usd_micros(self, usage: Usage) -> int:
        """What a round costs, rounded up so that many small ones never sum to less than the bill."""
        price = self._for_input(usage.input)
        total = (
            price.input_uncached * usage.input_uncached
            + price.cache_read * usage.cache_read
            + price.cache_write * usage.cache_write
            + price.output * usage.output
        )
        return -(-total // 1_000_000)

    def worst_case_usd_micros(self, input_tokens: int, output_tokens: int) -> int:
        """The most a round can cost: all its input in the dearest bucket, all its output used."""
        price = self._for_input(input_tokens)
        dearest = max(price.input_uncached, price.cache_read, price.cache_write)
        return -(-(dearest * input_tokens + price.output * output_tokens) // 1_000_000)

    def _for_input(self, tokens: int) -> "Price":
        return self.above if self.above is not None and tokens > self.above_tokens else self
