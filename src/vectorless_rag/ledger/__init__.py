"""
The record of what model calls cost, and the budgets they may not pass.

`vectorless_rag.ledger.types` holds the words; `vectorless_rag.ledger.book` holds
`Ledger`, the one way in. Only modules of this folder speak SQL. The words import
no database library, so that a process which opens no ledger does not pay for one.
"""
