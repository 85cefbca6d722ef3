CREATE STREAM s WITH (path='l', format='json', mode='fail');
CREATE SINK o WITH (path='out', format='json');
INSERT INTO o SELECT * FROM s;
