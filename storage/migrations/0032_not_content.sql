-- What was learnt of the block pages of hosts is in another form, and is learnt anew.
DELETE FROM not_content;
