"""What a site says of itself: pure parsers of its commands' answers, and the questions that need them."""
