"""The named endpoints, subject to the page's limits; an MCP server offers each as a tool.

components.api.text          generate, next_token, tokenize
components.api.analysis      attention, logit_lens, attribution, ablate, steer, hidden_state, patch, loss
components.api.results       types of their results
components.api.arguments     argument checks
components.api.registration  their names, queues and descriptions
"""
