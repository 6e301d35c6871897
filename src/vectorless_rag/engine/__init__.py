"""
Many machines, one queue: who builds what, when, and what becomes of it.

The board (`vectorless_rag.ledger.board`) is the truth about jobs. An engine only
schedules: it hands a turn of a job to some worker, at least once. Every effect is
guarded elsewhere: a try by the board, money by the ledger, an artifact by the store.
"""
