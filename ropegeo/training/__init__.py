"""The controlled models: recipes, training that resumes, and the test at lengths beyond the trained one."""
