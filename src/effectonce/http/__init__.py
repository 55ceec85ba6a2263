"""HTTP requests that take effect once: middleware for the `Idempotency-Key` header.

A client that got no answer does not know whether its request was carried out, and sends it again. With a key the first
request runs, and the others get its answer. `effectonce.http.asgi`, `.wsgi` and `.django` each have an
`IdempotencyMiddleware`; ``once.http.session()`` is the transaction in which work, messages and the record of the answer
commit together.

What all of them do is in `desk`: read the key, claim, and say what an answer means. After the IETF draft "The
Idempotency-Key HTTP Header Field" (draft-ietf-httpapi-idempotency-key-header-07) and what Stripe's API does.
"""
