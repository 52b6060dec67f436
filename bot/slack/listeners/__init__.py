"""What Kortex does with each delivery: messages, buttons, forms, commands, the home tab."""
