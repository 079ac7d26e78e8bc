"""Named endpoints, with the same limits as the page. The MCP server offers each of them as a tool.

components.api.text          list_models, generate, next_token, tokenize
components.api.analysis      attention, logit_lens, attribution, ablate, steer, hidden_state, patch, loss
components.api.results       result types
components.api.arguments     argument checks
components.api.registration  endpoint names, queues, descriptions
"""
