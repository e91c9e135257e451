def syntax(:
