"""Makes MuPDF's characters say what a person sees: what is hidden goes, what is raised stays raised."""
