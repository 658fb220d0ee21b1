"""Corrections of MuPDF's characters to what a person sees: hidden text, raised digits, gaps, accents."""
