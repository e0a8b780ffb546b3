"""What a person sees: progress, tables, findings, help, figures (`plots`) and the page of a run (`html`)."""
